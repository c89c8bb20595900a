import { program } from '../../tsup.base.ts'

// Minified: reading its files is a third of the time that a command takes to start.
export default program({ minify: true, sourcemap: false })
