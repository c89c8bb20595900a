export { AmbiguousResultError } from './ambiguous.ts'
