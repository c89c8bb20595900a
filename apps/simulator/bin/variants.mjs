// Changes of the sources that make rare states common. They are no defects: the simulation must find nothing.
export const variants = [
  {
    name: 'short-epochs',
    changes: [
      {
        file: 'packages/server/src/core/zab/step-down-policy.ts',
        find: 'const MAX_COUNTER = 0xffff_fffe',
        replace: 'const MAX_COUNTER = 150',
      },
    ],
  },
]

/** Returns the variant with a name; undefined without a name. */
export function variantOf(name) {
  const variant = variants.find((one) => one.name === name)
  if (name === undefined || variant !== undefined) return variant
  throw new RangeError(
    `Expected a variant, got ${name}. There are ${variants.map((one) => one.name).join(', ')}`,
  )
}
