import type { TadaDocumentNode } from "gql.tada";
import { useEffect, useState } from "preact/hooks";
import { ask, Refused } from "../api/ask.ts";
import { linkState } from "../api/link.ts";

export interface QueryView<Data> {
  data: Data | null;
  failure: string | null;
  /** Asks again. */
  refresh: () => void;
}

/** Asks once, and again when the connection is back or when told to. */
export function useQuery<Data, Variables>(
  document: TadaDocumentNode<Data, Variables>,
  variables: Variables,
): QueryView<Data> {
  const [data, setData] = useState<Data | null>(null);
  const [failure, setFailure] = useState<string | null>(null);
  const [round, setRound] = useState(0);
  const isOnline = linkState.value.kind === "online";
  useEffect(() => {
    let isShown = true;
    ask(document, variables).then(
      (answer) => {
        if (!isShown) return;
        setData(() => answer);
        setFailure(null);
      },
      (error: unknown) => {
        if (!(error instanceof Refused)) throw error;
        if (isShown) setFailure(error.message);
      },
    );
    return () => {
      isShown = false;
    };
  }, [round, isOnline]);
  return { data, failure, refresh: () => setRound((each) => each + 1) };
}
