// Seeded random numbers.

/** A generator of uniform numbers in [0, 1) (mulberry32). */
export function uniform(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let x = Math.imul(state ^ (state >>> 15), 1 | state);
    x = (x + Math.imul(x ^ (x >>> 7), 61 | x)) ^ x;
    return ((x ^ (x >>> 14)) >>> 0) / 4294967296;
  };
}

/** Standard normal numbers, Float32Array of this length (Box-Muller). */
export function normal(length, seed) {
  const random = uniform(seed);
  const made = new Float32Array(length);
  for (let i = 0; i < length; i += 2) {
    const radius = Math.sqrt(-2 * Math.log(1 - random()));
    const angle = 2 * Math.PI * random();
    made[i] = radius * Math.cos(angle);
    if (i + 1 < length) made[i + 1] = radius * Math.sin(angle);
  }
  return made;
}

/** A random order of these items. */
export function shuffled(items, random) {
  const made = [...items];
  for (let i = made.length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    [made[i], made[j]] = [made[j], made[i]];
  }
  return made;
}
