// oxlint-disable-next-line no-restricted-imports -- a test reads the file that it checks
import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import * as runtime from './index.ts'

it('the example of the README prints what the README says', () => {
  const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8')
  const [, names = '', body = ''] =
    /```js\nimport \{([^}]*)\} from '@zabra\/runtime'\n([\s\S]*?)```/.exec(readme) ?? []
  const printed: unknown[][] = []
  // oxlint-disable-next-line no-implied-eval -- the example is our own text
  const run = new Function('runtime', 'console', `const {${names}} = runtime\n${body}`)
  run(runtime, { log: (...words: unknown[]) => printed.push(words) })
  expect(printed).toEqual([['expired at', 5000], [['/data/epoch']]])
})
