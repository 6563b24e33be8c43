/** Where the server is: the folder this page came from, whatever prefix it has. */
export const baseUrl = new URL(".", location.href);

/** Returns the address of *path* below the server, for HTTP. */
export function serverUrl(path: string): string {
  return new URL(path, baseUrl).href;
}

/** Returns the address of *path* below the server, for WebSockets. */
export function socketUrl(path: string): string {
  const url = new URL(path, baseUrl);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  return url.href;
}
