import { FEATURES, type Feature } from './simulation/plan.ts'

/** Returns the number in an option of the command line. */
export function numberOf(text: string, name: string): number {
  const value = Number(text)
  if (Number.isFinite(value) && value >= 0) return value
  throw new RangeError(`Expected --${name} to be a number from 0 up, got ${text}`)
}

/** Returns the features that `--with` names. */
export const featuresOf = (text: string): Feature[] => text.split(',').map(featureOf)

function featureOf(name: string): Feature {
  const feature = FEATURES.find((one) => one === name)
  if (feature !== undefined) return feature
  throw new RangeError(`Expected --with to name some of ${FEATURES.join(', ')}, got ${name}`)
}
