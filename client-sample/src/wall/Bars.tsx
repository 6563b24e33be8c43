const HEIGHT = 60;
const GAP = 0.25;

/** A bar for each value, the highest as high as there is room. */
export function Bars({ values, label }: { values: number[]; label: string }) {
  const most = Math.max(1, ...values);
  return (
    <svg class="bars" viewBox={`0 0 ${values.length} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={label}>
      {values.map((value, index) => {
        // One unit is drawn also where nothing was: the axis.
        const height = Math.max(1, (value / most) * HEIGHT);
        return (
          <rect key={index} x={index + GAP / 2} y={HEIGHT - height} width={1 - GAP} height={height} class={value > 0 ? "" : "bar-none"} />
        );
      })}
    </svg>
  );
}
