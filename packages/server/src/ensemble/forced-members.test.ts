import { SeededRandom, silentLogger } from '@zabra/runtime'
import { nodeCompression } from '@zabra/runtime/node'
import { describe, expect, it } from 'vitest'
import { parseConfiguration } from '../core/quorum/index.ts'
import {
  abandonData,
  compareStates,
  forceMembers,
  readDatabase,
  readMemberState,
} from '../persistence/tools/index.ts'
import { IS_LONG } from '../testing/random-runs.ts'
import { Ensemble } from './testing/ensemble.ts'

/** Random histories. */
const HISTORIES = IS_LONG ? 100 : 10
const location = { dataDir: '/data', dataLogDir: '/data' }
const toolsOf = (ensemble: Ensemble, id: number) => ({
  disk: ensemble.member(id).disk,
  compression: nodeCompression,
  logger: silentLogger,
  random: new SeededRandom(id),
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

describe('a member that was forced while the others are a quorum', () => {
  it('is refused by them, who go on, also with another leader, and say what to do', async () => {
    const ensemble = await Ensemble.start(5)
    await ensemble.member(5).crash()
    const known = ensemble.member(5).settings.ensemble
    await forceMembers(location, [5], { ...toolsOf(ensemble, 5), known })
    await ensemble.member(5).start()
    await ensemble.until('the forced member to serve', () => ensemble.server(5).serving)
    const others = [1, 2, 3, 4]
    const leader = () =>
      others.find((id) => ensemble.server(id).role === 'leading' && ensemble.server(id).serving)
    await ensemble.until('a leader', () => leader() !== undefined)
    const former = leader()!
    await ensemble.advance(20_000)
    ensemble.server(former).yieldLeadership()
    await ensemble.until('another leader', () => ![undefined, former].includes(leader()))
    await ensemble.advance(20_000)
    expect(others.filter((id) => ensemble.member(id).failure !== undefined)).toEqual([])
    const client = await ensemble.client(former)
    expect(await ensemble.create(client, '/goes-on')).toBe('1:0')
    expect(ensemble.lines.join('\n')).toContain(
      'run zabra recover adopt on the data folder of server 5, and start it again',
    )
  })
})

/** Recovers member 5 of five alone, after which the others come back. */
async function recoverFifth(settings = {}): Promise<Ensemble> {
  const ensemble = await loseQuorum(5, [4, 5], settings)
  const tools = toolsOf(ensemble, 5)
  await forceMembers(location, [5], { ...tools, known: ensemble.member(5).settings.ensemble })
  return ensemble
}

const written = async (ensemble: Ensemble, id: number, path: string): Promise<void> => {
  const client = await ensemble.client(id)
  expect(await ensemble.create(client, path)).toBe('1:0')
}

describe.each([false, true])(
  'members of a lost quorum that come back (reconfigEnabled=%s)',
  (reconfigEnabled) => {
    const hasStopped = (ensemble: Ensemble, id: number): boolean => ensemble.member(id).failure !== undefined

    it('stop before they serve, and say what to do', async () => {
      const ensemble = await recoverFifth({ reconfigEnabled })
      await ensemble.member(5).start()
      await ensemble.until('the recovered member to serve', () => ensemble.server(5).serving)
      for (const id of [1, 2, 3]) await ensemble.member(id).start()
      await ensemble.until('the end of the former members', () => {
        for (const id of [1, 2, 3]) expect(ensemble.server(id).serving).toBe(false)
        return [1, 2, 3].every((id) => hasStopped(ensemble, id))
      })
      expect(String(ensemble.member(1).failure)).toContain('run zabra recover adopt on its data folder')
      await written(ensemble, 5, '/later')
    })

    it('go on and refuse the recovered member, if they have elected a leader before it starts', async () => {
      const ensemble = await recoverFifth({ reconfigEnabled })
      for (const id of [1, 2, 3]) await ensemble.member(id).start()
      await ensemble.allServe()
      await ensemble.member(5).start()
      await ensemble.until('the recovered member to serve', () => ensemble.server(5).serving)
      await ensemble.advance(30_000)
      expect([1, 2, 3].filter((id) => hasStopped(ensemble, id))).toEqual([])
      const leader = [1, 2, 3].find((id) => ensemble.server(id).role === 'leading')
      await written(ensemble, leader!, '/goes-on')
    })
  },
)

describe('abandonData', () => {
  it('lets a former member join the recovered ensemble', async () => {
    const ensemble = await recoverFifth({ reconfigEnabled: true, skipAcl: true })
    await ensemble.member(5).start()
    await ensemble.until('the recovered member to serve', () => ensemble.server(5).serving)
    await written(ensemble, 5, '/later')
    const { folder } = await abandonData(location, toolsOf(ensemble, 1))
    expect(folder).toBe('/data/version-2/set-aside')
    const { settings } = ensemble.member(1)
    const lines = [1, 5].map((id) => `server.${id}=127.0.0.1:${2000 + id}:${3000 + id}`)
    ensemble.member(1).settings = { ...settings, ensemble: parseConfiguration(lines.join('\n')) }
    await ensemble.member(1).start()
    await ensemble.until('the former member to follow', () => ensemble.server(1).serving)
    expect(await ensemble.read(1, '/later', '/kept')).toEqual(['1:0', '2:0'])
    const client = await ensemble.client(5)
    const joining = 'server.1=127.0.0.1:2001:3001:participant;4001'
    expect(await ensemble.reconfigure(client, { joining })).toBe('77:0')
    await ensemble.restart(1)
    await ensemble.restart(5)
    await ensemble.allServe()
  })

  it('keeps former members from electing a leader of an empty ensemble', async () => {
    const ensemble = await recoverFifth()
    for (const id of [1, 2, 3]) {
      await abandonData(location, toolsOf(ensemble, id))
      await ensemble.member(id).start()
    }
    await ensemble.advance(30_000)
    for (const id of [1, 2, 3]) expect(ensemble.server(id).serving).toBe(false)
  })

  it('completes after a crash at any write', async () => {
    const ensemble = await recoverFifth()
    const original = ensemble.member(1).disk.clone()
    original.putFile('/data/version-2/zabra.level', new TextEncoder().encode('1\n'))
    for (let fails = 0; ; fails++) {
      const disk = original.clone()
      let calls = 0
      disk.injectFault = () => (calls++ === fails ? { code: 'EIO' } : undefined)
      const tools = { ...toolsOf(ensemble, 1), disk }
      const failed = await abandonData(location, tools).then(
        () => false,
        () => true,
      )
      disk.injectFault = undefined
      disk.powerCut()
      if (!failed) break
      await abandonData(location, tools)
      expect((await disk.list('/data/version-2')).toSorted(), `call ${fails}`).toEqual([
        'distrusted',
        'set-aside',
      ])
    }
  })

  it('refuses a folder that is none', async () => {
    const tools = { disk: (await loseQuorum(3, [2])).member(2).disk, logger: silentLogger }
    await expect(abandonData({ dataDir: '/none', dataLogDir: '/none' }, tools)).rejects.toThrow(
      'Name its dataDir',
    )
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

describe('the state that compareStates prefers', () => {
  /** Plays writes, crashes and transfers on five members until a quorum is lost. Returns the paths of acknowledged writes. */
  async function play(ensemble: Ensemble, random: SeededRandom): Promise<string[]> {
    const acknowledged: string[] = []
    for (let step = 0; step < 8; step++) {
      const down = [...ensemble.members.keys()].filter((id) => ensemble.member(id).server === undefined)
      const up = [...ensemble.members.keys()].filter((id) => !down.includes(id))
      const id = up[random.below(up.length)]!
      switch (random.below(5)) {
        case 0:
          if (down.length < 2) await ensemble.member(id).crash()
          break
        case 1:
          if (down.length > 0) await ensemble.member(down[0]!).start()
          break
        case 2:
          if (ensemble.leader !== undefined) ensemble.server(ensemble.leader).yieldLeadership()
          break
        default: {
          let leader: number | undefined
          await ensemble.until('a leader', () => (leader = ensemble.leader) !== undefined)
          // A leader that yields may close its port first.
          const client = await ensemble.client(leader!).catch(() => undefined)
          if (client === undefined) break
          // The last writes of many are in flight when members crash.
          for (let i = 0; i < 4; i++) client.create(i + 1, `/${step}-${i}`)
          await ensemble.advance(random.below(2) * 50)
          for (const reply of client.takeReceived())
            if (reply.endsWith(':0')) acknowledged.push(`/${step}-${Number(reply.split(':')[0]) - 1}`)
        }
      }
    }
    return acknowledged
  }

  it(`has each acknowledged write that any survivor has, in ${HISTORIES} random histories`, async () => {
    let differing = 0
    for (let seed = 1; seed <= HISTORIES; seed++) {
      const random = new SeededRandom(seed)
      const ensemble = await Ensemble.start(5)
      const acknowledged = await play(ensemble, random)
      for (const member of ensemble.members.values()) if (member.server !== undefined) await member.crash()
      const first = 1 + random.below(5)
      const survivors = [first, (first % 5) + 1]
      const read = async (id: number) => {
        const { disk, compression, logger } = toolsOf(ensemble, id)
        const contents = await readDatabase(disk, location, compression, logger)
        const paths = new Set([...contents.nodes()].map(({ path }) => path))
        const state = await readMemberState(location, toolsOf(ensemble, id))
        return { state, paths: acknowledged.filter((path) => paths.has(path)) }
      }
      const states = await Promise.all(survivors.map(read))
      states.sort((a, b) => compareStates(a.state, b.state))
      const chosen = states.at(-1)!
      for (const { paths } of states)
        expect(chosen.paths, `seed ${seed}`).toEqual(expect.arrayContaining(paths))
      if (states[0]!.paths.length < chosen.paths.length) differing++
    }
    expect(differing).toBeGreaterThan(0)
  })
})
