import { Component, type ComponentChild, type FunctionComponent, h } from "preact";

/** A component that is drawn anew only when one of its properties is another one. */
export function memo<Props extends object>(draw: FunctionComponent<Props>): FunctionComponent<Props & { key?: string }> {
  class Memo extends Component<Props> {
    override shouldComponentUpdate(next: Props): boolean {
      const names = Object.keys(next) as (keyof Props)[];
      return names.some((name) => next[name] !== this.props[name]);
    }
    override render(): ComponentChild {
      return h(draw as FunctionComponent<object>, this.props);
    }
  }
  return Memo as unknown as FunctionComponent<Props & { key?: string }>;
}
