/**
 * Writes `src/gen/records.gen.ts` from the record table: one reader and one writer for each record, straight-line, so that
 * a missing or mistyped field does not compile. Run it with `pnpm gen` in this package.
 */
import { writeFileSync } from 'node:fs'
import { generate } from '../src/schema/generate.ts'

writeFileSync('src/gen/records.gen.ts', generate())
