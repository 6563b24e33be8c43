import { addressOf } from "../router.ts";
import type { TerminalLink, TerminalView } from "./TerminalLink.ts";

/** Says what is not as usual: away, ended, looking on. Nothing while all is well. */
export function Status({ link }: { link: TerminalLink }) {
  const view = link.view.value;
  const sentence = describe(view);
  return (
    <div class={`terminal-status phase-${view.phase}`} role="status">
      {sentence}
      {view.phase === "waiting" ? (
        <button type="button" onClick={() => link.retryNow()}>
          Try now
        </button>
      ) : null}
      {view.phase === "gone" ? <a href={addressOf("terminals")}>All terminals</a> : null}
    </div>
  );
}

function describe(view: TerminalView): string {
  switch (view.phase) {
    case "connecting":
      return "Connecting…";
    case "waiting":
      return "The server is away. Your program goes on running; the screen comes back by itself.";
    case "ended":
      return view.exitStatus === null ? "Its program has ended." : `Its program has ended (status ${view.exitStatus}).`;
    case "lost":
      return "This terminal ended when its machine or host went away. This is its last screen.";
    case "gone":
      return "This terminal was closed.";
    case "refused":
      return view.message ?? "This login may not see terminals.";
    default:
      return view.canType ? "" : "You look on; this login may not type.";
  }
}
