import { program } from '../../tsup.base.ts'

// Not minified, so that stack traces have names without source maps.
export default program({ sourcemap: false })
