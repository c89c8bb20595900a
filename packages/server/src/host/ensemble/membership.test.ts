import { MemoryDisk, silent } from '@zabra/runtime'
import { expect, it } from 'vitest'
import {
  parseConfiguration,
  printConfiguration,
  type EnsembleConfiguration,
} from '../../core/quorum/index.ts'
import { loadConfigurations } from './configuration-files.ts'
import { Membership } from './membership.ts'

const configuration = (version: number, ...ids: number[]): EnsembleConfiguration =>
  parseConfiguration(
    [...ids.map((id) => `server.${id}=h${id}:1:2`), `version=${version.toString(16)}`].join('\n'),
  )

it('writes what a full disk has refused when it is asked for again', async () => {
  const disk = new MemoryDisk()
  await disk.makeFolder('/data')
  const written = configuration(0, 1, 2, 3)
  const membership = new Membership(1, { active: written }, { disk, folder: '/data', written })
  const [second, third] = [configuration(0x100000002, 1, 2, 3, 4), configuration(0x100000003, 2, 3, 4)]
  disk.fault = (call) => (call === 'write' ? { code: 'ENOSPC' } : undefined)
  await expect(membership.activate(second).kept).rejects.toThrow('ENOSPC')
  await expect(membership.activate(second).kept).rejects.toThrow('ENOSPC')
  await expect(membership.propose(third)).rejects.toThrow('ENOSPC')
  disk.fault = undefined
  await membership.activate(second).kept
  const { active, proposed } = await loadConfigurations(disk, '/data', written, silent)
  expect([active, proposed].map((one) => one && printConfiguration(one))).toEqual(
    [second, third].map(printConfiguration),
  )
})
