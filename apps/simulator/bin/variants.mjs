// Changes of the sources under which the simulation must find nothing: what is rare becomes common. They are no mistakes.
export const variants = [
  {
    name: 'short-epochs',
    changes: [
      {
        file: 'server/src/core/zab/step-down.ts',
        find: 'const LAST_COUNTER = 0xffff_fffe',
        replace: 'const LAST_COUNTER = 150',
      },
    ],
  },
]

/** The variant of a name; undefined without one. */
export function variantOf(name) {
  const variant = variants.find((one) => one.name === name)
  if (name === undefined || variant !== undefined) return variant
  throw new RangeError(
    `Expected a variant, got ${name}. There are ${variants.map((one) => one.name).join(', ')}`,
  )
}
