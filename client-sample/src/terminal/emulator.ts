import { FitAddon } from "@xterm/addon-fit";
import { SearchAddon } from "@xterm/addon-search";
import { Unicode11Addon } from "@xterm/addon-unicode11";
import { WebLinksAddon } from "@xterm/addon-web-links";
import { WebglAddon } from "@xterm/addon-webgl";
import { Terminal } from "@xterm/xterm";
import { parseLink } from "../text/links.ts";
import type { Emulator } from "./OutputTracker.ts";
import { SIZE_LIMIT } from "./protocol.ts";
import { themeNow } from "./theme.ts";

const RESET = new TextEncoder().encode("\x1bc");
/** What a repaint restores at most. */
const SCROLLBACK_LINES = 1000;
const FONT_PX = 14;

export interface Xterm {
  terminal: Terminal;
  search: SearchAddon;
  emulator: Emulator;
  /** The size that would fill the element; null while it has none. */
  proposeSize: () => { cols: number; rows: number } | null;
  dispose: () => void;
}

/** Opens xterm.js in *element*, with all that is dangerous in it switched off. */
export function openXterm(element: HTMLElement): Xterm {
  const terminal = new Terminal({
    allowProposedApi: true,
    cursorBlink: !matchMedia("(prefers-reduced-motion: reduce)").matches,
    fontFamily: 'ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace',
    fontSize: FONT_PX,
    linkHandler: { activate: (_event, text) => openLink(text) },
    minimumContrastRatio: 4.5,
    scrollback: SCROLLBACK_LINES,
    theme: themeNow(),
  });
  const fit = new FitAddon();
  const search = new SearchAddon();
  terminal.loadAddon(fit);
  terminal.loadAddon(search);
  // The host counts widths as Unicode 11 does; another table would shift lines.
  terminal.loadAddon(new Unicode11Addon());
  terminal.unicode.activeVersion = "11";
  terminal.loadAddon(new WebLinksAddon((_event, text) => openLink(text)));
  leaveAnswersToHost(terminal);
  terminal.open(element);
  useWebgl(terminal);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const recolour = () => {
    terminal.options.theme = themeNow();
  };
  dark.addEventListener("change", recolour);
  return {
    terminal,
    search,
    emulator: emulatorOf(terminal),
    proposeSize: () => sane(fit.proposeDimensions()),
    dispose: () => {
      dark.removeEventListener("change", recolour);
      terminal.dispose();
    },
  };
}

function emulatorOf(terminal: Terminal): Emulator {
  return {
    write: (bytes, done) => terminal.write(bytes, done),
    repaint: (bytes, cols, rows) => {
      // In the order of the writes: what is still queued belongs to the old screen.
      terminal.write("", () => terminal.resize(cols, rows));
      const whole = new Uint8Array(RESET.length + bytes.length);
      whole.set(RESET);
      whole.set(bytes, RESET.length);
      terminal.write(whole);
    },
    resize: (cols, rows) => {
      terminal.write("", () => {
        if (terminal.cols !== cols || terminal.rows !== rows) terminal.resize(cols, rows);
      });
    },
  };
}

/**
 * The host answers what programs ask of their terminal, once for all clients. Our own
 * answers would be a second one, typed into the program.
 */
function leaveAnswersToHost(terminal: Terminal): void {
  const swallow = () => true;
  for (const id of [
    { final: "c" },
    { prefix: ">", final: "c" },
    { prefix: "=", final: "c" },
    { final: "n" },
    { prefix: "?", final: "n" },
    { intermediates: "$", final: "p" },
    { prefix: "?", intermediates: "$", final: "p" },
    { prefix: ">", final: "q" },
    { prefix: "?", final: "u" },
    { final: "t" },
  ]) {
    terminal.parser.registerCsiHandler(id, swallow);
  }
  // Colours may be set, and are only asked for with a question mark.
  for (const number of [4, 10, 11, 12]) {
    terminal.parser.registerOscHandler(number, (data) => data.includes("?"));
  }
  // The clipboard is the person's (OSC 52).
  terminal.parser.registerOscHandler(52, swallow);
}

/** Opens a link that an agent printed, after the person saw where it leads. */
function openLink(text: string): void {
  const link = parseLink(text);
  if (link && confirm(`Open ${link.host} in a new tab?\n\n${link.href}`)) {
    open(link.href, "_blank", "noopener,noreferrer");
  }
}

/** Draws with the graphics card where there is one; else, and after its loss, with elements. */
function useWebgl(terminal: Terminal): void {
  try {
    const webgl = new WebglAddon();
    webgl.onContextLoss(() => webgl.dispose());
    terminal.loadAddon(webgl);
  } catch {
    // xterm.js keeps its own renderer then.
  }
}

function sane(size: { cols: number; rows: number } | undefined): { cols: number; rows: number } | null {
  if (!size || !(size.cols >= 1) || !(size.rows >= 1)) return null;
  return { cols: Math.min(size.cols, SIZE_LIMIT), rows: Math.min(size.rows, SIZE_LIMIT) };
}
