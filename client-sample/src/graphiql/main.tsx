/** @jsxImportSource react */
import "graphiql/setup-workers/vite";
import "graphiql/style.css";
import "@graphiql/plugin-explorer/style.css";
import "./graphiql.css";
import { explorerPlugin } from "@graphiql/plugin-explorer";
import type { Fetcher } from "@graphiql/toolkit";
import { GraphiQL, HISTORY_PLUGIN } from "graphiql";
import { useState } from "react";
import { createRoot } from "react-dom/client";
import { EXAMPLES } from "./examples.ts";
import { makeFetcher } from "./fetcher.ts";
import { TokenForm } from "./TokenForm.tsx";

const KEY = "sidestage.token";
const explorer = explorerPlugin({ showAttribution: false });

/** The explorer of the API. It shares the tab's login with the client. */
function Page() {
  const [token, setToken] = useState(sessionStorage.getItem(KEY));
  if (token === null) return <TokenForm onToken={keep} />;
  return <Explorer fetcher={makeFetcher(token)} />;

  function keep(text: string): void {
    sessionStorage.setItem(KEY, text);
    setToken(text);
  }
}

function Explorer({ fetcher }: { fetcher: Fetcher }) {
  return (
    <GraphiQL
      fetcher={fetcher}
      plugins={[explorer, HISTORY_PLUGIN]}
      defaultTabs={EXAMPLES}
      shouldPersistHeaders={false}
      isHeadersEditorEnabled={false}
      defaultEditorToolsVisibility="variables"
    >
      <GraphiQL.Logo>Sidestage</GraphiQL.Logo>
    </GraphiQL>
  );
}

const root = document.getElementById("app");
if (root) createRoot(root).render(<Page />);
