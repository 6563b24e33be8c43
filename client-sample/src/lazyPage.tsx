import type { FunctionComponent } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Loading, Notice } from "./ui/parts.tsx";

type PageComponent = FunctionComponent<{ id: string }>;

/** A page whose code is loaded when it is first shown. */
export function lazyPage(load: () => Promise<PageComponent>): PageComponent {
  let loaded: PageComponent | null = null;
  return function LazyPage({ id }) {
    const [Page, setPage] = useState<PageComponent | null>(() => loaded);
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
    return Page ? <Page key={id} id={id} /> : <div class="page"><Loading /></div>;
  };
}
