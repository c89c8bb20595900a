// oxlint-disable-next-line no-restricted-imports -- a test reads the file that it checks
import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { FULL_VERSION, VERSION } from './version.ts'

it('the version is that of the package, and the full version begins with the release that the divergences follow', () => {
  const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
    version: string
  }
  expect(VERSION).toBe(version)
  const divergences = readFileSync(new URL('../../../docs/divergence.md', import.meta.url), 'utf8')
  const release = /Zabra follows (\d+\.\d+\.\d+)\./.exec(divergences)![1]!
  expect(FULL_VERSION).toMatch(
    new RegExp(
      `^${release.replaceAll('.', '\\.')}-zabra-${version}, built on \\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d UTC$`,
    ),
  )
})
