import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { loadConfiguration } from './configuration.ts'

test('the example configuration loads without a warning', () => {
  const config = fileURLToPath(new URL('../examples/zoo.cfg', import.meta.url))
  const options = {
    config,
    checkConfig: false,
    port: undefined,
    data: undefined,
    logLevel: undefined,
    logFormat: undefined,
  }
  const { settings, findings } = loadConfiguration(options, {})
  expect(findings).toEqual([])
  expect(settings).toMatchObject({ dataDir: '/var/lib/zabra', clientPort: 2181, tickTimeMs: 2000 })
})
