import { program } from '../../tsup.base.ts'

// Source maps, so that stack traces point to the sources.
export default program({ sourcemap: true })
