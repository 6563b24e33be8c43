import type { SearchAddon } from "@xterm/addon-search";
import { useEffect, useRef, useState } from "preact/hooks";
import { Icon } from "../ui/Icon.tsx";

/** Finds a text on the screen and in what scrolled out of it. */
export function SearchBar({ search, onClose }: { search: SearchAddon; onClose: () => void }) {
  const input = useRef<HTMLInputElement>(null);
  const [text, setText] = useState("");
  const [isFound, setFound] = useState(true);
  useEffect(() => {
    input.current?.focus();
    return () => search.clearDecorations();
  }, [search]);
  const find = (isNext: boolean) => {
    if (text) setFound(isNext ? search.findNext(text) : search.findPrevious(text));
  };
  return (
    <form
      class="search-bar"
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        find(false);
      }}
      onKeyDown={(event) => {
        if (event.key === "Escape") onClose();
      }}
    >
      <input
        ref={input}
        type="search"
        aria-label="Search the screen"
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      <span class="muted" role="status">{text && !isFound ? "Not found" : ""}</span>
      <button type="button" class="icon-button" aria-label="Earlier" onClick={() => find(false)}>
        <Icon name="up" />
      </button>
      <button type="button" class="icon-button" aria-label="Later" onClick={() => find(true)}>
        <Icon name="down" />
      </button>
      <button type="button" class="icon-button" aria-label="Close the search" onClick={onClose}>
        <Icon name="close" />
      </button>
    </form>
  );
}
