import { useState } from "preact/hooks";
import { ask, payload } from "../api/ask.ts";
import { useFeed } from "../api/useFeed.ts";
import { Notice } from "../ui/parts.tsx";
import { useAction } from "../ui/useAction.ts";
import { CancelPairing, ConfirmPairing, CreatePairing, type PairingRow, PairingsFeed } from "./documents.ts";
import { QrCode } from "./QrCode.tsx";

interface Opened {
  id: string;
  link: string;
}

/** Pairs another device: its QR code here, then the code that the device shows. */
export function PairForm() {
  const [opened, setOpened] = useState<Opened | null>(null);
  const open = useAction(async () => {
    const { createPairing } = await ask(CreatePairing, { input: {} });
    const { link, pairing } = payload(createPairing, "CreatePairingPayload");
    setOpened({ id: pairing.id, link });
  });
  if (opened) return <OpenPairing key={opened.id} opened={opened} onClose={() => setOpened(null)} />;
  return (
    <div class="actions">
      <button type="button" class="primary" disabled={open.isBusy} onClick={open.run}>
        Pair a device
      </button>
      {open.failure ? <Notice tone="bad">{open.failure}</Notice> : null}
    </div>
  );
}

function OpenPairing({ opened, onClose }: { opened: Opened; onClose: () => void }) {
  const view = useFeed(PairingsFeed, {}, (data) => data.pairingFeed);
  const pairing = view.rows.get(opened.id);
  const cancel = async () => {
    onClose();
    await ask(CancelPairing, { input: { pairingId: opened.id } });
  };
  return (
    <section class="card" aria-label="Pairing">
      {pairing?.state === "CLAIMED" ? <CodeForm pairing={pairing} /> : null}
      {pairing?.state === "OPEN" || !pairing ? <ShowLink link={opened.link} /> : null}
      {pairing?.state === "CONFIRMED" ? <p role="status">{pairing.name} is paired.</p> : null}
      {pairing?.state === "ENDED" ? <Notice tone="bad">{ENDS[pairing.end ?? ""] ?? "The pairing has ended."}</Notice> : null}
      <button
        type="button"
        class="quiet"
        onClick={() => (pairing?.state === "CONFIRMED" || pairing?.state === "ENDED" ? onClose() : void cancel())}
      >
        {pairing?.state === "CONFIRMED" || pairing?.state === "ENDED" ? "Done" : "Cancel"}
      </button>
    </section>
  );
}

const ENDS: Record<string, string> = {
  EXPIRED: "Nobody used the link in time.",
  CANCELLED: "The pairing was cancelled.",
  TWO_DEVICES: "Two devices read the link, so neither was let in. Pair again where nobody sees it.",
  WRONG_CODES: "The code was wrong three times; nobody was let in.",
  WRONG_PROOFS: "Someone guessed at the link's secret; nobody was let in.",
};

function ShowLink({ link }: { link: string }) {
  return (
    <>
      <h2>Scan this with the device</h2>
      <QrCode text={link} label="The pairing link as a QR code" />
      <details>
        <summary>Or open the link there</summary>
        <p class="path">{link}</p>
      </details>
      <p class="muted">It holds a secret, and is good once, for five minutes.</p>
    </>
  );
}

function CodeForm({ pairing }: { pairing: PairingRow }) {
  const [code, setCode] = useState("");
  const confirm = useAction(async () => {
    const { confirmPairing } = await ask(ConfirmPairing, { input: { pairingId: pairing.id, code } });
    payload(confirmPairing, "ConfirmPairingPayload");
  });
  return (
    <form
      class="answer"
      onSubmit={(event) => {
        event.preventDefault();
        void confirm.run();
      }}
    >
      <h2>
        {pairing.name} ({pairing.platform}) wants in
      </h2>
      <p class="muted">It will be allowed: {pairing.scopes.join(", ").toLowerCase()}.</p>
      <label>
        The six digits it shows
        <input
          inputMode="numeric"
          autoComplete="off"
          maxLength={6}
          value={code}
          onInput={(event) => setCode(event.currentTarget.value.replace(/\D/g, ""))}
        />
      </label>
      <div class="verdict">
        <button type="submit" class="primary" disabled={confirm.isBusy || code.length !== 6}>
          Confirm
        </button>
      </div>
      {confirm.failure ? <Notice tone="bad">{confirm.failure}</Notice> : null}
    </form>
  );
}
