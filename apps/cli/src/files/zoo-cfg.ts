import { parseProperties } from '@zabra/server/settings'

/** Returns the values of a zoo.cfg by key, as a server reads them: the last one of a repeated key counts. */
export const valuesIn = (text: string): ReadonlyMap<string, string> =>
  new Map(parseProperties(text).properties.map(({ key, value }) => [key, value]))
