import { validatePath } from '@zabra/protocol'

/** From so many characters on, these expressions are faster than the loop of `validatePath`, which names what is wrong. */
const LONG = 1024
// eslint-disable-next-line no-control-regex
const FORBIDDEN = /[\0-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff]/
const BAD_COMPONENT = /\/(?:\/|\.\.?(?:\/|$))/

/** Returns whether `validatePath` accepts a path. */
export const isValidPath = (path: string): boolean =>
  (path.length >= LONG && isValidLong(path)) || validatePath(path) === undefined

const isValidLong = (path: string): boolean =>
  path.startsWith('/') && !path.endsWith('/') && !FORBIDDEN.test(path) && !BAD_COMPONENT.test(path)
