// oxlint-disable-next-line no-restricted-imports -- a test reads the file that it checks
import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import * as protocol from './index.ts'

it('the example of the README runs', () => {
  const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8')
  const [, names = '', body = ''] =
    /```js\nimport \{([^}]*)\} from '@zabra\/protocol'\n([\s\S]*?)```/.exec(readme) ?? []
  const printed: unknown[][] = []
  // oxlint-disable-next-line no-implied-eval -- the example is our own text
  const run = new Function('protocol', 'console', `const {${names}} = protocol\n${body}`)
  run(protocol, { log: (...words: unknown[]) => printed.push(words) })
  expect(printed).toEqual([[1, '/config']])
})
