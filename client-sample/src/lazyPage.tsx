import type { FunctionComponent } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Loading, Notice } from "./ui/parts.tsx";

/** A page whose code is loaded when it is first shown; another `id` is another page. */
export function lazyPage<Props extends object>(
  load: () => Promise<FunctionComponent<Props>>,
): FunctionComponent<Props> {
  let loaded: FunctionComponent<Props> | null = null;
  return function LazyPage(props) {
    const [Page, setPage] = useState<FunctionComponent<Props> | null>(() => loaded);
    const [isLost, setLost] = useState(false);
    useEffect(() => {
      if (Page) return;
      load().then(
        (component) => {
          loaded = component;
          setPage(() => component);
        },
        // The server was upgraded and no longer has the files of this version.
        () => setLost(true),
      );
    }, []);
    if (isLost) {
      return (
        <Notice tone="bad">
          This part of the page could not be loaded.{" "}
          <button type="button" onClick={() => location.reload()}>
            Reload
          </button>
        </Notice>
      );
    }
    return Page ? <Page key={"id" in props ? String(props.id) : ""} {...props} /> : <div class="page"><Loading /></div>;
  };
}
