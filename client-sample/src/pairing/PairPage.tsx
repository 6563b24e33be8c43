import { useEffect, useState } from "preact/hooks";
import { Refused } from "../api/ask.ts";
import { EnvelopeRefused } from "../keys/envelope.ts";
import { whyNoKeys } from "../keys/deviceKey.ts";
import type { PendingPairing } from "../keys/identity.ts";
import { forgetTabToken } from "../login/token.ts";
import { go } from "../router.ts";
import { Notice } from "../ui/parts.tsx";
import { useAction } from "../ui/useAction.ts";
import { type PairingLink, parsePairingLink } from "./link.ts";
import { askToPair, beginPairing, dropPairing, findPendingPairing } from "./pair.ts";

const AGAIN_MS = 2_000;

/** Makes this browser a device of its owner's: the link, then a code to type there. */
export function PairPage({ link }: { link: PairingLink | null }) {
  const [pending, setPending] = useState<PendingPairing | null>(null);
  const reason = whyNoKeys();
  useEffect(() => {
    // Only for who comes back: a new link is a new pairing.
    if (reason === null && link === null) void findPendingPairing().then(setPending);
  }, []);
  return (
    <main class="login" id="main">
      <img src="./icon.svg" alt="" width="56" height="56" />
      <h1>Pair this browser</h1>
      {reason ? <Notice tone="bad">{reason}</Notice> : null}
      {reason === null && pending === null ? <NameForm link={link} onBegun={setPending} /> : null}
      {reason === null && pending ? <CodeStep pending={pending} onAgain={() => setPending(null)} /> : null}
    </main>
  );
}

function NameForm({ link, onBegun }: { link: PairingLink | null; onBegun: (pending: PendingPairing) => void }) {
  const [name, setName] = useState(guessName());
  const [text, setText] = useState("");
  const parsed = link ?? safeParse(text);
  const begin = useAction(async () => {
    if (!parsed) return;
    try {
      onBegun(await beginPairing(parsed, name.trim()));
    } catch (error) {
      throw new Refused("NO_X25519", "This browser is too old: it cannot make the key. Update it, please.");
    }
  });
  return (
    <form
      class="card"
      onSubmit={(event) => {
        event.preventDefault();
        void begin.run();
      }}
    >
      <p>It can then see your sessions and answer what your agents ask, by a key that never leaves this browser.</p>
      {link ? null : (
        <>
          <label for="link">Link</label>
          <input id="link" value={text} autoComplete="off" spellcheck={false} placeholder="https://…/pair#1.…" onInput={(event) => setText(event.currentTarget.value)} />
          <p class="muted">
            It is shown by <code>sidestage pair</code>, and used up by one device.
          </p>
        </>
      )}
      <label for="name">Name of this browser</label>
      <input id="name" value={name} maxLength={64} onInput={(event) => setName(event.currentTarget.value)} />
      <button class="primary" type="submit" disabled={!parsed || !name.trim() || begin.isBusy}>
        Pair
      </button>
      {begin.failure ? <Notice tone="bad">{begin.failure}</Notice> : null}
    </form>
  );
}

function CodeStep({ pending, onAgain }: { pending: PendingPairing; onAgain: () => void }) {
  const [code, setCode] = useState<string | null>(null);
  const [failure, setFailure] = useState<string | null>(null);
  const [isOver, setOver] = useState(false);
  useEffect(() => {
    let timer = 0;
    let isShown = true;
    const step = async () => {
      const next = await tryOnce(pending);
      if (!isShown) return;
      if (next.kind === "paired") {
        // The device's own login takes over from whatever this tab had.
        forgetTabToken();
        go("");
      } else if (next.kind === "over") {
        setOver(true);
        setFailure(next.message);
      } else {
        if (next.code) setCode(next.code);
        setFailure(next.message);
        timer = setTimeout(step, next.waitMs);
      }
    };
    void step();
    return () => {
      isShown = false;
      clearTimeout(timer);
    };
  }, [pending]);
  const again = async () => {
    await dropPairing();
    onAgain();
  };
  return (
    <section class="card">
      {code && !isOver ? (
        <>
          <h2>Type this code on the machine</h2>
          <p class="code-shown" aria-label={code.split("").join(" ")}>
            {code}
          </p>
          <p class="muted">Where you ran sidestage pair, or in another browser's Devices page. It is checked three times at most.</p>
        </>
      ) : null}
      {!code && !failure ? <p role="status">Asking the server…</p> : null}
      {failure ? <Notice tone={isOver ? "bad" : "info"}>{failure}</Notice> : null}
      <button type="button" class="quiet" onClick={() => void again()}>
        {isOver ? "Start again" : "Cancel"}
      </button>
    </section>
  );
}

type Try =
  | { kind: "paired" }
  | { kind: "over"; message: string }
  | { kind: "wait"; code: string | null; waitMs: number; message: string | null };

async function tryOnce(pending: PendingPairing): Promise<Try> {
  try {
    const step = await askToPair(pending);
    if (step === "paired") return { kind: "paired" };
    return { kind: "wait", code: step.code, waitMs: step.retryAfterMs, message: null };
  } catch (error) {
    if (error instanceof EnvelopeRefused) {
      return { kind: "over", message: "The answer was not sealed by the host this link names. Nothing was stored." };
    }
    if (!(error instanceof Refused)) throw error;
    const isPassing = error.code === "OFFLINE" || error.code === "RATE_LIMITED";
    if (isPassing) return { kind: "wait", code: null, waitMs: AGAIN_MS, message: error.message };
    return { kind: "over", message: `${error.message} Run sidestage pair again for a new link.` };
  }
}

function safeParse(text: string): PairingLink | null {
  try {
    return parsePairingLink(text);
  } catch {
    return null;
  }
}

function guessName(): string {
  const agent = navigator.userAgent;
  const browser = /Firefox/.test(agent) ? "Firefox" : /Edg\//.test(agent) ? "Edge" : /Chrome/.test(agent) ? "Chrome" : /Safari/.test(agent) ? "Safari" : "Browser";
  const system = [["iPhone", "iPhone"], ["iPad", "iPad"], ["Android", "Android"], ["Mac", "Mac"], ["Windows", "Windows"], ["Linux", "Linux"]].find(([word]) => agent.includes(word ?? ""));
  return system ? `${browser} on ${system[1]}` : browser;
}
