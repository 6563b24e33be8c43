// What the modules under test ask of a browser when they are loaded.
class NoStorage {
  getItem(): null {
    return null;
  }
  setItem(): void {}
  removeItem(): void {}
}

Object.assign(globalThis, {
  location: new URL("http://127.0.0.1:8787/"),
  sessionStorage: new NoStorage(),
  localStorage: new NoStorage(),
});
