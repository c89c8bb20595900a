import { OpCode } from '@zabra/protocol'
import { MemoryDisk, silentLogger } from '@zabra/runtime'
import { diskWithFolder } from '@zabra/testkit'
import { expect, it } from 'vitest'
import { parseConfiguration, printConfiguration, type EnsembleConfiguration } from '../core/quorum/index.ts'
import { CONFIGURATION_NODE, Tree } from '../core/tree/index.ts'
import { loadConfigurations } from './configuration-files.ts'
import { Membership } from './membership.ts'

const configuration = (version: number, ...ids: number[]): EnsembleConfiguration =>
  parseConfiguration(
    [...ids.map((id) => `server.${id}=h${id}:1:2`), `version=${version.toString(16)}`].join('\n'),
  )

/** Returns a membership of three voters on an empty disk. */
async function given() {
  const disk = await diskWithFolder('/data')
  const written = configuration(0x100000000, 1, 2, 3)
  return {
    disk,
    written,
    membership: new Membership(1, { active: written }, { disk, folder: '/data', written }),
  }
}

const reconfigure = (tree: Tree, zxid: number, text: string): number =>
  tree.apply(
    { sessionId: 1n, cxid: 1, zxid, time: 7 },
    { type: OpCode.reconfig, path: CONFIGURATION_NODE, data: new TextEncoder().encode(text), version: -1 },
  )

it('a membership writes again what a full disk has refused', async () => {
  const disk = await diskWithFolder('/data')
  const written = configuration(0, 1, 2, 3)
  const membership = new Membership(1, { active: written }, { disk, folder: '/data', written })
  const [second, third] = [configuration(0x100000002, 1, 2, 3, 4), configuration(0x100000003, 2, 3, 4)]
  disk.injectFault = (call) => (call === 'write' ? { code: 'ENOSPC' } : undefined)
  await expect(membership.activate(second).persisted).rejects.toThrow('ENOSPC')
  await expect(membership.activate(second).persisted).rejects.toThrow('ENOSPC')
  await expect(membership.propose(third)).rejects.toThrow('ENOSPC')
  disk.injectFault = undefined
  await membership.activate(second).persisted
  const { active, proposed } = await loadConfigurations(disk, '/data', written, silentLogger)
  expect([active, proposed].map((one) => one && printConfiguration(one))).toEqual(
    [second, third].map(printConfiguration),
  )
})

it('a change at the end of the log counts as proposed until the log is truncated', () => {
  const disk = new MemoryDisk()
  const written = configuration(0x100000000, 1, 2, 3)
  const membership = new Membership(1, { active: written }, { disk, folder: '/data', written })
  const tree = new Tree({ extendedTypes: false, digest: true })
  membership.recallLogged(tree)
  expect(membership.configurations).toEqual({ active: written })
  const next = configuration(0x100000005, 1, 2)
  reconfigure(tree, 0x100000005, printConfiguration(next))
  membership.recallLogged(tree)
  expect(membership.proposed).toEqual(next)
  // A text that is no configuration, or whose version is not the zxid, was written by an operator.
  for (const [zxid, text] of [
    [0x100000006, 'nonsense=1'],
    [0x100000007, printConfiguration(configuration(0x200000000, 1))],
  ] as const) {
    reconfigure(tree, zxid, text)
    membership.recallLogged(tree)
    expect(membership.configurations).toEqual({ active: written })
  }
  // A change that a new leader has truncated is proposed no more.
  reconfigure(tree, 0x100000008, printConfiguration(configuration(0x100000008, 1, 2)))
  membership.recallLogged(tree)
  expect(membership.proposed?.version).toBe(0x100000008)
  membership.recallLogged(new Tree({ extendedTypes: false, digest: true }))
  expect(membership.configurations).toEqual({ active: written })
})

it('a change that is not in the history of a later leader is forgotten, also on disk', async () => {
  const { disk, written, membership } = await given()
  const tree = new Tree({ extendedTypes: false, digest: true })
  const lost = configuration(0x100000005, 1, 2)
  await membership.propose(lost)
  // Its own epoch may go on with it.
  expect([membership.forgetLost(tree, 1), membership.proposed]).toEqual([undefined, lost])
  disk.injectFault = (call) => (call === 'remove' ? { code: 'EIO' } : undefined)
  await expect(membership.forgetLost(tree, 2)).rejects.toThrow('EIO')
  disk.injectFault = undefined
  await membership.activate(written).persisted
  const stored = await loadConfigurations(disk, '/data', written, silentLogger)
  expect([membership.proposed, membership.forgetLost(tree, 2), stored]).toEqual([
    undefined,
    undefined,
    { active: written },
  ])
})

it('a change that is in the history of a later leader is kept', async () => {
  const { membership } = await given()
  const tree = new Tree({ extendedTypes: false, digest: true })
  const next = configuration(0x100000005, 1, 2)
  await membership.propose(next)
  reconfigure(tree, 0x100000005, printConfiguration(next))
  expect([membership.forgetLost(tree, 2), membership.proposed]).toEqual([undefined, next])
})

it.each([
  ['that is not in the log', 0x100000005, 0x100000004, 1, true],
  ['that is in the log', 0x100000005, 0x100000005, 1, false],
  ['that an acknowledged NEWLEADER of a later epoch has named', 0x100000005, 0x100000004, 2, false],
  ['that only gives the configuration its first version', 0x200000000, 0x100000004, 2, false],
])('a change %s is forgotten after a power cut, or not', async (_, version, lastZxid, epoch, isForgotten) => {
  const disk = await diskWithFolder('/data')
  const written = configuration(0x100000000, 1, 2, 3)
  const proposed = configuration(version, 1, 4, 5)
  await new Membership(1, { active: written }, { disk, folder: '/data', written }).propose(proposed)
  disk.powerCut()
  const known = await loadConfigurations(disk, '/data', written, silentLogger)
  const membership = new Membership(1, known, { disk, folder: '/data', written })
  await membership.forgetUnlogged(lastZxid, epoch)
  disk.powerCut()
  const stored = await loadConfigurations(disk, '/data', written, silentLogger)
  const expected = isForgotten ? undefined : proposed
  expect([membership.proposed, stored.proposed]).toEqual([expected, expected])
})

it('a proposed configuration replaces an earlier one, and never a later one, in memory and on disk', async () => {
  const { disk, written, membership } = await given()
  for (const [version, kept] of [
    [0x100000000, undefined],
    [0x100000005, 0x100000005],
    [0x100000004, 0x100000005],
    [0x100000005, 0x100000005],
    [0x200000003, 0x200000003],
  ] as const) {
    await membership.propose(configuration(version, 1, 2))
    disk.powerCut()
    const stored = await loadConfigurations(disk, '/data', written, silentLogger)
    expect([membership.proposed?.version, stored.proposed?.version], String(version)).toEqual([kept, kept])
  }
})

it('an activated configuration replaces what was proposed up to it, and nothing later', async () => {
  const { disk, written, membership } = await given()
  const activate = async (version: number, ...ids: number[]) => {
    const { changed, before, persisted } = membership.activate(configuration(version, ...ids))
    await persisted
    const stored = await loadConfigurations(disk, '/data', written, silentLogger)
    expect(stored).toEqual(membership.configurations)
    const { active, proposed } = membership.configurations
    return [changed, before.version, active.version, proposed?.version].map((value) =>
      typeof value === 'number' ? value - 0x100000000 : value,
    )
  }
  await membership.propose(configuration(0x100000005, 1, 2))
  expect(await activate(0x100000004, 1, 2, 3, 4)).toEqual([true, 0, 4, 5])
  expect(await activate(0x100000005, 1, 2)).toEqual([true, 4, 5, undefined])
  // The same members in a newer version, the same version, and an older one.
  expect(await activate(0x100000006, 1, 2)).toEqual([false, 5, 6, undefined])
  expect(await activate(0x100000006, 1, 3)).toEqual([false, 6, 6, undefined])
  expect(await activate(0x100000005, 1, 3)).toEqual([false, 6, 6, undefined])
  await membership.propose(configuration(0x100000007, 1, 3))
  expect(await activate(0x100000008, 1, 4)).toEqual([true, 6, 8, undefined])
})

it('a change at the end of the log counts as proposed until it, or a later one, is activated', async () => {
  const { membership } = await given()
  const tree = new Tree({ extendedTypes: false, digest: true })
  const next = configuration(0x100000005, 1, 2)
  reconfigure(tree, 0x100000005, printConfiguration(next))
  membership.recallLogged(tree)
  await membership.activate(configuration(0x100000004, 1, 2, 3, 4)).persisted
  expect(membership.proposed).toEqual(next)
  await membership.activate(next).persisted
  expect(membership.proposed).toBeUndefined()
  membership.recallLogged(tree)
  expect(membership.proposed).toBeUndefined()
})
