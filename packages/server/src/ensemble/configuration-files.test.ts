import { MemoryDisk, silentLogger } from '@zabra/runtime'
import { diskWithFolder } from '@zabra/testkit'
import { expect, it } from 'vitest'
import { parseConfiguration, printConfiguration, type EnsembleConfiguration } from '../core/quorum/index.ts'
import { writeActive, writeProposed, loadConfigurations } from './configuration-files.ts'

const configuration = (version: number, ...ids: number[]): EnsembleConfiguration =>
  parseConfiguration(
    [...ids.map((id) => `server.${id}=h${id}:1:2`), `version=${version.toString(16)}`].join('\n'),
  )
const written = configuration(0, 1, 2, 3)

async function loaded(disk: MemoryDisk, from = written): Promise<Record<string, string>> {
  const known = await loadConfigurations(disk, '/data', from, silentLogger)
  return Object.fromEntries(Object.entries(known).map(([name, one]) => [name, printConfiguration(one)]))
}

it("the operator's configuration is loaded until a newer one is active", async () => {
  const disk = new MemoryDisk()
  expect(await loaded(disk)).toEqual({ active: printConfiguration(written) })
  await disk.makeFolder('/data')
  const [second, third] = [configuration(0x100000002, 1, 2, 3, 4), configuration(0x10000000a, 2, 3, 4)]
  await writeProposed(disk, '/data', second)
  expect(await loaded(disk)).toEqual({
    active: printConfiguration(written),
    proposed: printConfiguration(second),
  })
  await writeActive(disk, '/data', second)
  expect(await loaded(disk)).toEqual({ active: printConfiguration(second) })
  await writeProposed(disk, '/data', third)
  await writeActive(disk, '/data', second)
  expect((await loaded(disk))['proposed']).toBe(printConfiguration(third))
  await writeActive(disk, '/data', third)
  expect(await loaded(disk)).toEqual({ active: printConfiguration(third) })
  const files = ['/data/zoo.cfg.dynamic.100000002', '/data/zoo.cfg.dynamic.10000000a']
  expect(disk.paths()).toEqual(files)
  disk.powerCut()
  expect(disk.paths()).toEqual(files)
})

it("the operator's configuration is loaded when it is at least as new as the stored one", async () => {
  const disk = await diskWithFolder('/data')
  await writeActive(disk, '/data', configuration(0x100000002, 1, 2))
  expect(await loaded(disk, configuration(0x200000001, 7, 8, 9))).toEqual({
    active: printConfiguration(configuration(0x200000001, 7, 8, 9)),
  })
  expect(await loaded(disk, configuration(0x100000002, 7, 8, 9))).toEqual({
    active: printConfiguration(configuration(0x100000002, 7, 8, 9)),
  })
  // The operator's configuration is not written to another file.
  const before = disk.paths()
  await writeActive(disk, '/data', written)
  expect(disk.paths()).toEqual(before)
})

it('an unreadable configuration file is named in the error', async () => {
  const disk = await diskWithFolder('/data')
  disk.putFile('/data/zoo.cfg.dynamic.5', new TextEncoder().encode('server.1=here'))
  await expect(loaded(disk)).rejects.toThrow(/zoo\.cfg\.dynamic\.5/)
})

it('an active configuration is not loaded as proposed when a crash has left the proposed file', async () => {
  const disk = await diskWithFolder('/data')
  const second = configuration(0x100000002, 1, 2, 3, 4)
  await writeProposed(disk, '/data', second)
  disk.injectFault = (call) => (call === 'remove' ? { code: 'EIO' } : undefined)
  await expect(writeActive(disk, '/data', second)).rejects.toThrow('EIO')
  disk.injectFault = undefined
  disk.powerCut()
  expect(await loaded(disk)).toEqual({ active: printConfiguration(second) })
})

it("a warning is logged only when the operator's configuration is older and has other members", async () => {
  const disk = await diskWithFolder('/data')
  await writeActive(disk, '/data', configuration(0x100000002, 1, 2, 3, 4))
  const lines: string[] = []
  const logger = {
    ...silentLogger,
    warn: (facts: object, sentence: string) => lines.push(`${sentence} ${JSON.stringify(facts)}`),
  }
  await loadConfigurations(disk, '/data', configuration(0, 1, 2, 3, 4), logger)
  expect(lines).toEqual([])
  await loadConfigurations(disk, '/data', written, logger)
  expect(lines).toEqual([expect.stringContaining('zoo.cfg.dynamic.100000002')])
})
