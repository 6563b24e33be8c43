import type { Terminal } from "@xterm/xterm";
import { useState } from "preact/hooks";
import { BAR_KEYS } from "./keys.ts";
import type { Control } from "./TerminalPage.tsx";

/** Keys that a touch screen's keyboard lacks; shown where the finger is the pointer. */
export function KeyBar({ terminal, control }: { terminal: Terminal; control: Control }) {
  const [isHeld, setHeld] = useState(false);
  const hold = (held: boolean) => {
    control.isHeld = held;
    setHeld(held);
  };
  control.release = () => {
    if (control.isHeld) hold(false);
  };
  // Keys must not take the focus: the on-screen keyboard would close.
  const keepFocus = (event: Event) => event.preventDefault();
  return (
    <div class="key-bar" role="toolbar" aria-label="Keys" onPointerDown={keepFocus} onMouseDown={keepFocus}>
      <button type="button" aria-pressed={isHeld} onClick={() => hold(!isHeld)}>
        Ctrl
      </button>
      {BAR_KEYS.map((key) => (
        <button
          key={key.name}
          type="button"
          aria-label={key.name}
          onClick={() => terminal.input(key.data(terminal.modes.applicationCursorKeysMode))}
        >
          {key.label}
        </button>
      ))}
      {navigator.clipboard ? (
        <button type="button" onClick={() => void paste(terminal)}>
          Paste
        </button>
      ) : null}
    </div>
  );
}

async function paste(terminal: Terminal): Promise<void> {
  try {
    terminal.paste(await navigator.clipboard.readText());
  } catch {
    // The person did not allow it; nothing is pasted.
  }
}
