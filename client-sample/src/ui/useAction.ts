import { useState } from "preact/hooks";
import { Refused } from "../api/ask.ts";

export interface Action {
  isBusy: boolean;
  /** Why it did not work, in a sentence; null if nothing went wrong. */
  failure: string | null;
  run: () => Promise<void>;
}

/** Runs something a button starts: once at a time, and its failure is shown. */
export function useAction(work: () => Promise<void>): Action {
  const [isBusy, setBusy] = useState(false);
  const [failure, setFailure] = useState<string | null>(null);
  const run = async () => {
    if (isBusy) return;
    setBusy(true);
    setFailure(null);
    try {
      await work();
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      setFailure(error.message);
    } finally {
      setBusy(false);
    }
  };
  return { isBusy, failure, run };
}
