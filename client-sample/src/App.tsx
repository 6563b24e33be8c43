import { useEffect, useState } from "preact/hooks";
import { Refused } from "./api/ask.ts";
import { closeLink } from "./api/link.ts";
import { Board } from "./board/Board.tsx";
import { followSessions } from "./board/sessions.ts";
import { lazyPage } from "./lazyPage.tsx";
import { Login } from "./login/Login.tsx";
import { findScopes } from "./login/scopes.ts";
import { token } from "./login/token.ts";
import { addressOf, place } from "./router.ts";
import { SessionPage } from "./session/SessionPage.tsx";
import { Empty, Loading } from "./ui/parts.tsx";
import { Shell } from "./ui/Shell.tsx";

const TerminalPage = lazyPage(() => import("./terminal/TerminalPage.tsx").then((each) => each.TerminalPage));
const TerminalsPage = lazyPage(() => import("./lists/Terminals.tsx").then((each) => each.Terminals));
const WallPage = lazyPage(() => import("./wall/Wall.tsx").then((each) => each.Wall));
const ProjectsPage = lazyPage(() => import("./lists/Projects.tsx").then((each) => each.Projects));
const AuditPage = lazyPage(() => import("./lists/Audit.tsx").then((each) => each.Audit));
const DevicesPage = lazyPage(() => import("./lists/Devices.tsx").then((each) => each.Devices));
const SettingsPage = lazyPage(() => import("./settings/Settings.tsx").then((each) => each.Settings));

/** How long to wait before asking a server again that did not answer at first. */
const AGAIN_MS = 2_000;

export function App() {
  if (token.value === null) return <Login />;
  return <LoggedIn key={token.value} />;
}

/** Everything behind a login; a new login starts all of it anew. */
function LoggedIn() {
  const [isReady, setReady] = useState(false);
  useEffect(() => {
    let timer = 0;
    let stop = () => {};
    let isShown = true;
    const start = async () => {
      try {
        await findScopes();
      } catch (error) {
        if (!(error instanceof Refused)) throw error;
        timer = setTimeout(start, AGAIN_MS);
        return;
      }
      if (!isShown) return;
      stop = followSessions();
      setReady(true);
    };
    void start();
    return () => {
      isShown = false;
      clearTimeout(timer);
      stop();
      closeLink();
    };
  }, []);
  if (!isReady) return <div class="page"><Loading /></div>;
  const { page } = place.value;
  if (page === "wall") return <WallPage id="" />;
  if (page === "terminal") return <TerminalPage id={place.value.id} />;
  return (
    <Shell>
      <CurrentPage />
    </Shell>
  );
}

function CurrentPage() {
  const { page, id } = place.value;
  switch (page) {
    case "":
      return <Board />;
    case "session":
      return <SessionPage key={id} id={id} />;
    case "terminals":
      return <TerminalsPage id="" />;
    case "projects":
      return <ProjectsPage id="" />;
    case "audit":
      return <AuditPage id="" />;
    case "devices":
      return <DevicesPage id="" />;
    case "settings":
      return <SettingsPage id="" />;
    default:
      return (
        <Empty title="There is no such page">
          <p>
            <a href={addressOf("")}>All sessions</a>
          </p>
        </Empty>
      );
  }
}
