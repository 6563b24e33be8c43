import "@xterm/xterm/css/xterm.css";
import { useEffect, useRef, useState } from "preact/hooks";
import { ask, payload, Refused } from "../api/ask.ts";
import type { ResultOf } from "../api/graphql.ts";
import { go } from "../router.ts";
import { Icon } from "../ui/Icon.tsx";
import { useAction } from "../ui/useAction.ts";
import { CloseTerminal, TerminalInfo } from "./documents.ts";
import { openXterm, type Xterm } from "./emulator.ts";
import { KeyBar } from "./KeyBar.tsx";
import { withControl } from "./keys.ts";
import { takeStarted } from "./opening.ts";
import { SearchBar } from "./SearchBar.tsx";
import { Status } from "./Status.tsx";
import { TerminalLink } from "./TerminalLink.ts";

/** A window that is being dragged tells its size when it rests. */
const RESIZE_REST_MS = 120;

interface Parts {
  link: TerminalLink;
  xterm: Xterm;
}

/** One terminal, over the whole window. */
export function TerminalPage({ id }: { id: string }) {
  const element = useRef<HTMLDivElement>(null);
  const [parts, setParts] = useState<Parts | null>(null);
  const [isSearching, setSearching] = useState(false);
  const control = useRef({ isHeld: false, release: () => {} });
  useEffect(() => {
    if (!element.current) return;
    const opened = openParts(id, element.current, control.current);
    setParts(opened.parts);
    return opened.close;
  }, [id]);
  useKeyboardHeight();
  return (
    <div class="terminal-page">
      <Head id={id} parts={parts} onSearch={() => setSearching(!isSearching)} />
      <main id="main" class="terminal-body">
        {isSearching && parts ? <SearchBar search={parts.xterm.search} onClose={() => setSearching(false)} /> : null}
        <div class="terminal-scroll">
          <div class="terminal-fit" ref={element} />
        </div>
        {parts ? <Status link={parts.link} /> : null}
        {parts ? <KeyBar terminal={parts.xterm.terminal} control={control.current} /> : null}
      </main>
    </div>
  );
}

export interface Control {
  isHeld: boolean;
  release: () => void;
}

function openParts(id: string, element: HTMLElement, control: Control): { parts: Parts; close: () => void } {
  const xterm = openXterm(element);
  const link = new TerminalLink(id, xterm.emulator, { mode: "CONTROL", claims: takeStarted(id) });
  const { terminal } = xterm;
  const encoder = new TextEncoder();
  terminal.onData((data) => {
    const typed = control.isHeld ? withControl(data) : data;
    control.release();
    link.type(encoder.encode(typed));
  });
  terminal.onBinary((data) => link.type(Uint8Array.from(data, (character) => character.charCodeAt(0))));
  terminal.attachCustomKeyEventHandler((event) => !handleClipboardKey(event, terminal));
  const stopSizing = followSize(element, xterm, link);
  link.start();
  terminal.focus();
  return {
    parts: { link, xterm },
    close: () => {
      stopSizing();
      link.stop();
      xterm.dispose();
    },
  };
}

/** Copies and pastes by Ctrl+Shift+C and V, since Ctrl+C and V are the program's. */
function handleClipboardKey(event: KeyboardEvent, terminal: Xterm["terminal"]): boolean {
  if (event.type !== "keydown" || !event.ctrlKey || !event.shiftKey) return false;
  if (event.code === "KeyC" && terminal.hasSelection()) {
    event.preventDefault();
    void navigator.clipboard?.writeText(terminal.getSelection());
    return true;
  }
  // The browser's own paste event follows, which xterm.js takes.
  return event.code === "KeyV";
}

/** Tells the link the window's size whenever it rests at another one. */
function followSize(element: HTMLElement, xterm: Xterm, link: TerminalLink): () => void {
  let timer = 0;
  const tell = () => {
    const size = document.visibilityState === "visible" ? xterm.proposeSize() : null;
    if (size) link.setSize(size);
  };
  tell();
  const observer = new ResizeObserver(() => {
    clearTimeout(timer);
    timer = setTimeout(tell, RESIZE_REST_MS);
  });
  observer.observe(element.parentElement ?? element);
  const wake = () => link.retryNow();
  addEventListener("online", wake);
  document.addEventListener("visibilitychange", wake);
  return () => {
    clearTimeout(timer);
    observer.disconnect();
    removeEventListener("online", wake);
    document.removeEventListener("visibilitychange", wake);
  };
}

/** Keeps the page above an on-screen keyboard, also where that covers the window. */
function useKeyboardHeight(): void {
  useEffect(() => {
    const viewport = window.visualViewport;
    if (!viewport) return;
    const follow = () => document.documentElement.style.setProperty("--seen-height", `${viewport.height}px`);
    follow();
    viewport.addEventListener("resize", follow);
    return () => {
      viewport.removeEventListener("resize", follow);
      document.documentElement.style.removeProperty("--seen-height");
    };
  }, []);
}

type Info = Extract<NonNullable<ResultOf<typeof TerminalInfo>["node"]>, { sandbox: unknown }>;

function Head({ id, parts, onSearch }: { id: string; parts: Parts | null; onSearch: () => void }) {
  const [info, setInfo] = useState<Info | null>(null);
  const view = parts?.link.view.value;
  useEffect(() => {
    ask(TerminalInfo, { id })
      .then(({ node }) => setInfo(node && "sandbox" in node ? node : null))
      .catch((error: unknown) => {
        // The status line says that the server is away.
        if (!(error instanceof Refused)) throw error;
      });
  }, [id, view?.phase]);
  const closing = useAction(async () => {
    if (!confirm("End this terminal and everything that runs in it?")) return;
    const { closeTerminal } = await ask(CloseTerminal, { input: { terminalId: id } });
    payload(closeTerminal, "CloseTerminalPayload");
    leave(info);
  });
  return (
    <header class="terminal-head">
      <button type="button" class="icon-button" aria-label="Back" onClick={() => leave(info)}>
        <Icon name="back" />
      </button>
      <div class="terminal-title">
        <h1 dir="auto">{info?.session?.name ?? info?.name ?? "Terminal"}</h1>
        <p class="muted">{describe(info)}</p>
      </div>
      {view?.phase === "attached" && view.canType && !view.isOwner ? (
        <button type="button" onClick={() => parts?.link.claim()}>
          Fit
        </button>
      ) : null}
      <button type="button" class="icon-button" aria-label="Search the screen" onClick={onSearch}>
        <Icon name="search" />
      </button>
      <button type="button" class="icon-button" aria-label="End this terminal" disabled={closing.isBusy} onClick={closing.run}>
        <Icon name="close" />
      </button>
      {closing.failure ? <p class="terminal-failure" role="alert">{closing.failure}</p> : null}
    </header>
  );
}

function describe(info: Info | null): string {
  if (!info) return "";
  const walls = info.sandbox.enabled ? (info.readOnly ? "sandboxed, read-only" : "sandboxed") : "not sandboxed";
  return [info.directory, walls].filter(Boolean).join(" · ");
}

function leave(info: Info | null): void {
  if (info?.session) go("session", info.session.id);
  else go("terminals");
}

