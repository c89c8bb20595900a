import { silentLogger } from '@zabra/runtime'
import { nodeCompression } from '@zabra/runtime/node'
import { describe, expect, it } from 'vitest'
import { compareStates, forceMembers, readMemberState } from '../persistence/tools/index.ts'
import { Ensemble } from './testing/ensemble.ts'

const location = { dataDir: '/data', dataLogDir: '/data' }
const toolsOf = (ensemble: Ensemble, id: number) => ({
  disk: ensemble.member(id).disk,
  compression: nodeCompression,
  logger: silentLogger,
})

/** Starts an ensemble, writes to it, and loses members for good. */
async function loseQuorum(size: number, survivors: readonly number[], settings = {}): Promise<Ensemble> {
  const ensemble = await Ensemble.start(size, settings)
  const client = await ensemble.client(ensemble.leader!)
  await ensemble.create(client, '/kept')
  await ensemble.advance(1000)
  for (const id of ensemble.members.keys()) await ensemble.member(id).crash()
  expect(survivors.length).toBeLessThan(size / 2)
  return ensemble
}

describe('forceMembers', () => {
  it.each([false, true])(
    'lets one of three members go on alone (reconfigEnabled=%s)',
    async (reconfigEnabled) => {
      const ensemble = await loseQuorum(3, [2], { reconfigEnabled })
      const tools = toolsOf(ensemble, 2)
      const before = await readMemberState(location, tools)
      const forced = await forceMembers(location, [2], {
        ...tools,
        known: ensemble.member(2).settings.ensemble,
      })
      expect(forced).toMatchObject({ from: before.lastZxid, epoch: before.acceptedEpoch! + 2 })
      await ensemble.member(2).start()
      await ensemble.until('a leader', () => ensemble.leader === 2)
      const client = await ensemble.client(2)
      await ensemble.create(client, '/later')
      expect(client.closed).toBe(false)
      expect((await readMemberState(location, tools)).configuration?.members.size).toBe(1)
    },
  )

  it.each([false, true])(
    'keeps a member that returns from serving writes of its own (reconfigEnabled=%s)',
    async (reconfigEnabled) => {
      const ensemble = await loseQuorum(3, [2], { reconfigEnabled })
      const tools = toolsOf(ensemble, 2)
      await forceMembers(location, [2], { ...tools, known: ensemble.member(2).settings.ensemble })
      await ensemble.member(2).start()
      await ensemble.until('a leader', () => ensemble.leader === 2)
      const client = await ensemble.client(2)
      await ensemble.create(client, '/later')
      await ensemble.member(1).start()
      await ensemble.advance(30_000)
      expect(ensemble.leader).toBe(2)
      expect(['looking', 'following', 'observing']).toContain(ensemble.member(1).server!.role)
      // It may follow without a vote; it never has other data than the member that went on.
      if (ensemble.member(1).server!.serving)
        expect(ensemble.member(1).server!.stats().lastZxid).toBe(ensemble.member(2).server!.stats().lastZxid)
    },
  )

  it('goes on after a crash at any write, or is refused until it is run again', async () => {
    const ensemble = await loseQuorum(3, [2])
    const known = ensemble.member(2).settings.ensemble
    const original = ensemble.member(2).disk.clone()
    for (let fails = 0; ; fails++) {
      const disk = original.clone()
      let calls = 0
      disk.injectFault = () => (calls++ === fails ? { code: 'EIO' } : undefined)
      const tools = { ...toolsOf(ensemble, 2), disk }
      const failed = await forceMembers(location, [2], { ...tools, known }).then(
        () => false,
        () => true,
      )
      disk.injectFault = undefined
      disk.powerCut()
      if (!failed) break
      await forceMembers(location, [2], { ...tools, known })
      const state = await readMemberState(location, tools)
      expect(state.nodes, `call ${fails}`).toBe(5)
      expect(state.configuration?.members.size).toBe(1)
    }
  })

  it('refuses ids of no member, and a folder without data', async () => {
    const ensemble = await loseQuorum(3, [2])
    const tools = toolsOf(ensemble, 2)
    const known = ensemble.member(2).settings.ensemble
    await expect(forceMembers(location, [7], { ...tools, known })).rejects.toThrow('Name some of 1, 2, 3')
    await expect(forceMembers({ dataDir: '/none', dataLogDir: '/none' }, [2], tools)).rejects.toThrow()
  })
})

describe('compareStates', () => {
  it('prefers the history of the later epoch, then the longer one', async () => {
    const ensemble = await loseQuorum(3, [1])
    const states = await Promise.all([1, 2, 3].map((id) => readMemberState(location, toolsOf(ensemble, id))))
    const longest = { ...states[0]!, lastZxid: states[0]!.lastZxid + 5 }
    const later = { ...states[0]!, currentEpoch: states[0]!.currentEpoch! + 1 }
    expect([longest, later, ...states].toSorted(compareStates).at(-1)).toBe(later)
    expect([longest, ...states].toSorted(compareStates).at(-1)).toBe(longest)
  })
})
