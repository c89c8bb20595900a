export { AmbiguousResultError } from './ambiguous-result.ts'
