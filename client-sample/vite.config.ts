import { resolve } from "node:path";
import { defineConfig } from "vitest/config";

export default defineConfig({
  // Relative, so that the same build works below any path prefix.
  base: "./",
  build: {
    target: "es2022",
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 5000,
    rolldownOptions: {
      onLog: (level, log, report) => {
        // "use client" is for servers that render; React's libraries carry it along.
        // @hpke asks for Node's module only where a browser's own is missing.
        const isKnown = log.code === "MODULE_LEVEL_DIRECTIVE" || log.message.includes('Module "crypto"');
        if (!isKnown) report(level, log);
      },
      input: {
        index: resolve(import.meta.dirname, "index.html"),
        graphiql: resolve(import.meta.dirname, "graphiql.html"),
      },
    },
  },
  worker: { format: "es" },
  server: {
    // `npm run dev` beside a server on its usual port; allow the origin there with
    // allowed_origins = ["http://localhost:5173"].
    proxy: {
      "/graphql": { target: "http://127.0.0.1:8787", ws: true },
      "/terminals/": { target: "http://127.0.0.1:8787", ws: true },
      "/browser-login": "http://127.0.0.1:8787",
    },
  },
  test: { include: ["test/**/*.test.{ts,tsx}"], environment: "node", setupFiles: ["test/setup.ts"] },
});
