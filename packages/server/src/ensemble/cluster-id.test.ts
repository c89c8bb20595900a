import { SeededRandom } from '@zabra/runtime'
import { describe, expect, it } from 'vitest'
import { formatClusterId, type ClusterId, type ServerId } from '../core/quorum/index.ts'
import { CLUSTER_FILE, readClusterId, writeClusterId } from '../persistence/index.ts'
import { IS_LONG } from '../testing/random-runs.ts'
import { TestServer } from '../testing/test-server.ts'
import { Ensemble } from './testing/ensemble.ts'
import { hideExtensions } from './testing/hide-extensions.ts'

const FOLDER = '/data/version-2'
/** Random histories. */
const HISTORIES = IS_LONG ? 60 : 4

const idOf = (ensemble: Ensemble, id: ServerId): Promise<ClusterId> =>
  readClusterId(ensemble.member(id).disk, FOLDER)

/** Waits until all running members have a final id, and returns the different ones. */
async function finalIds(ensemble: Ensemble): Promise<readonly string[]> {
  const { members, clock } = ensemble
  for (let waited = 0; waited < 100; waited++) {
    const running = [...members.values()].filter(({ server }) => server !== undefined)
    const ids = await Promise.all(running.map(({ id }) => idOf(ensemble, id)))
    const texts = ids.map((id) => (id.isProposed ? 'proposed' : formatClusterId(id)))
    if (!texts.some((text) => text === 'proposed' || text === 'none')) return [...new Set(texts)]
    await ensemble.advance(100)
  }
  throw new Error(`Some member has no final id at ${clock.monotonic()} ms`)
}

describe('a new ensemble', () => {
  it('gets one id with its first leader, also on observers, and keeps it', async () => {
    const ensemble = await Ensemble.start(4, { observers: [4] })
    const first = await finalIds(ensemble)
    expect(first).toEqual([expect.stringMatching(/^0-[\da-f]{32}$/)])
    await ensemble.restart(ensemble.leader!)
    await ensemble.allServe()
    expect(await finalIds(ensemble)).toEqual(first)
  })

  it('gets one on observers that follow an observer master', async () => {
    const ensemble = await Ensemble.start(4, { observers: [4], observerMasterPort: 5000 })
    expect(await finalIds(ensemble)).toHaveLength(1)
  })

  it.each([1, 2])('gets one where %i of three members have started first', async (late) => {
    const ensemble = new Ensemble(3)
    for (let id = 1; id <= 3 - late; id++) await ensemble.member(id).start()
    await ensemble.advance(10_000)
    for (let id = 4 - late; id <= 3; id++) await ensemble.member(id).start()
    await ensemble.allServe()
    expect(await finalIds(ensemble)).toHaveLength(1)
  })

  it('gives its id to a former leader whose own was only proposed', async () => {
    const ensemble = new Ensemble(3)
    for (const id of [1, 2]) await ensemble.member(id).start()
    await ensemble.allServe()
    const final = await finalIds(ensemble)
    const { disk } = ensemble.member(3)
    await disk.makeFolder(FOLDER)
    const proposed = { generation: 0, bytes: new Uint8Array(16).fill(0xab), isProposed: true }
    await writeClusterId(disk, FOLDER, proposed)
    await ensemble.startServing(3)
    expect(await finalIds(ensemble)).toEqual(final)
  })

  it.each([
    ['of crashes', false],
    ['in which members run Apache ZooKeeper at times', true],
  ])(`has never two final ids in ${HISTORIES} random histories %s`, async (_, hides) => {
    for (let seed = 1; seed <= HISTORIES; seed++) {
      const random = new SeededRandom(seed)
      const ensemble = new Ensemble(3)
      let final: string | undefined
      const check = async (): Promise<void> => {
        for (const id of [1, 2, 3]) {
          const found = await idOf(ensemble, id)
          if (found.isProposed || formatClusterId(found) === 'none') continue
          final ??= formatClusterId(found)
          expect(formatClusterId(found), `seed ${seed}`).toBe(final)
        }
      }
      let restore = (): void => {}
      for (let step = 0; step < (hides ? 40 : 24); step++) {
        const member = ensemble.member(random.below(3) + 1)
        if (hides && random.below(4) === 0) {
          restore()
          restore = random.below(2) === 0 ? hideExtensions(ensemble) : () => {}
        }
        if (member.server === undefined) await member.start()
        else await member.crash()
        // Elections and the first epochs take about this long.
        for (let left = random.below(12); left > 0; left--) await ensemble.advance(50)
        await check()
      }
      restore()
      for (const member of ensemble.members.values()) {
        if (hides && member.server !== undefined) await member.crash()
        if (member.server === undefined) await member.start()
      }
      await ensemble.allServe(60_000)
      expect(await finalIds(ensemble), `seed ${seed}`).toHaveLength(1)
      await check()
    }
  })
})

describe('an ensemble that has no id', () => {
  /** Removes the ids of stopped members. */
  async function forget(ensemble: Ensemble, ids: readonly ServerId[]): Promise<void> {
    for (const id of ids) await ensemble.member(id).crash()
    for (const id of ids) await ensemble.member(id).disk.remove(`${FOLDER}/${CLUSTER_FILE}`)
  }

  it('gets one with its next leader', async () => {
    const ensemble = await Ensemble.start(3)
    await ensemble.create(await ensemble.client(1), '/kept')
    await finalIds(ensemble)
    await forget(ensemble, [1, 2, 3])
    for (const id of [1, 2, 3]) await ensemble.member(id).start()
    await ensemble.allServe()
    expect(await finalIds(ensemble)).toHaveLength(1)
  })

  it('gets none while a voter runs Apache ZooKeeper, and one afterwards', async () => {
    const ensemble = new Ensemble(3)
    const restore = hideExtensions(ensemble)
    for (const id of [1, 2, 3]) await ensemble.member(id).start()
    await ensemble.allServe()
    await ensemble.advance(3000)
    for (const id of [1, 2, 3]) expect(formatClusterId(await idOf(ensemble, id))).toBe('none')
    restore()
    for (const id of [1, 2, 3]) await ensemble.member(id).crash()
    for (const id of [1, 2, 3]) await ensemble.member(id).start()
    await ensemble.allServe()
    expect(await finalIds(ensemble)).toHaveLength(1)
  })
})

describe('an ensemble in which leaders of Apache ZooKeeper came in between', () => {
  const [first, second] = [0xaa, 0xbb].map((byte) => ({
    generation: 0,
    bytes: new Uint8Array(16).fill(byte),
    isProposed: true,
  })) as [ClusterId, ClusterId]
  const final = { ...first, isProposed: false }

  /** Returns a stopped ensemble with one history, whose members 1 to 3 have these ids. */
  async function withIds(...ids: readonly (ClusterId | undefined)[]): Promise<Ensemble> {
    return prepared(new Ensemble(3), ids)
  }

  async function prepared(ensemble: Ensemble, ids: readonly (ClusterId | undefined)[]): Promise<Ensemble> {
    const restore = hideExtensions(ensemble)
    for (const { start } of bound(ensemble)) await start()
    await ensemble.allServe()
    await ensemble.create(await ensemble.client(ensemble.leader!), '/history')
    await ensemble.advance(1000)
    restore()
    for (const { id, crash, disk } of bound(ensemble)) {
      await crash()
      if (ids[id - 1] !== undefined) await writeClusterId(disk, FOLDER, ids[id - 1]!)
    }
    return ensemble
  }

  const bound = (ensemble: Ensemble) =>
    [...ensemble.members.values()].map((member) => ({
      id: member.id,
      disk: member.disk,
      start: () => member.start(),
      crash: () => member.crash(),
    }))

  it('makes no other id final while the member where one is final is down', async () => {
    const ensemble = await withIds(final, first, second)
    for (const id of [2, 3]) await ensemble.member(id).start()
    await ensemble.allServe()
    expect(ensemble.leader).toBe(3)
    await ensemble.advance(10_000)
    expect(await Promise.all([1, 2, 3].map((id) => idOf(ensemble, id)))).toEqual([final, first, second])
    await ensemble.startServing(1)
    expect(await finalIds(ensemble)).toEqual([formatClusterId(final)])
    await ensemble.restart(ensemble.leader!)
    await ensemble.allServe()
    expect(await finalIds(ensemble)).toEqual([formatClusterId(final)])
  })

  it('gives the final id to an observer whose observer master had another one when it connected', async () => {
    const ensemble = new Ensemble(4, { observers: [4], observerMasterPort: 5000 })
    await prepared(ensemble, [final, second, first])
    for (const id of [2, 3]) await ensemble.member(id).start()
    await ensemble.advance(3000)
    expect(ensemble.leader).toBe(3)
    await ensemble.startServing(4)
    await ensemble.startServing(1)
    expect(await finalIds(ensemble)).toEqual([formatClusterId(final)])
  })

  it('takes the only id that may be final, for one of the leader that cannot be', async () => {
    const ensemble = await withIds(undefined, first, second)
    for (const id of [1, 2, 3]) await ensemble.member(id).start()
    await ensemble.allServe()
    expect(await finalIds(ensemble)).toHaveLength(1)
  })

  it('gets one final id though each voter has proposed another one', async () => {
    const ensemble = await withIds({ ...first, bytes: new Uint8Array(16).fill(0xcc) }, first, second)
    for (const id of [1, 2, 3]) await ensemble.member(id).start()
    await ensemble.allServe()
    expect(await finalIds(ensemble)).toHaveLength(1)
  })
})

describe('a leader that stops', () => {
  it('keeps its folder locked until the write of the final id has ended', async () => {
    const ensemble = new Ensemble(3)
    let release = (): void => {}
    const held = new Promise<void>((resolve) => (release = resolve))
    let writer: ServerId | undefined
    for (const { id, disk } of [1, 2, 3].map((id) => ensemble.member(id))) {
      const replaceFile = disk.replaceFile.bind(disk)
      disk.replaceFile = async (path: string, bytes: Uint8Array) => {
        const isFinal = path.endsWith(CLUSTER_FILE) && !new TextDecoder().decode(bytes).includes('proposed')
        if (isFinal && writer === undefined) {
          writer = id
          await held
        }
        return replaceFile(path, bytes)
      }
    }
    for (const id of [1, 2, 3]) await ensemble.member(id).start()
    await ensemble.until('a final id', () => writer !== undefined, 20_000)
    const { disk } = ensemble.member(writer!)
    const isLocked = (): boolean => disk.paths().some((path) => path.endsWith('zabra.lock'))
    const closing = ensemble.server(writer!).close()
    await ensemble.advance(20_000)
    expect(isLocked()).toBe(true)
    release()
    await ensemble.until('the folder to be unlocked', () => !isLocked())
    await closing
  })
})

describe('a member with the id of another ensemble', () => {
  it('is refused, and both say the ids and what to do', async () => {
    const ensemble = await Ensemble.start(3)
    const own = await finalIds(ensemble)
    const [foreign] = [1, 2, 3].filter((id) => id !== ensemble.leader)
    await ensemble.member(foreign!).crash()
    const other = { generation: 0, bytes: new Uint8Array(16).fill(0xab), isProposed: false }
    await writeClusterId(ensemble.member(foreign!).disk, FOLDER, other)
    ensemble.lines.length = 0
    await ensemble.member(foreign!).start()
    await ensemble.advance(20_000)
    expect(ensemble.server(foreign!).serving).toBe(false)
    for (const id of [foreign!, ensemble.leader!]) {
      const lines = ensemble.lines.filter((line) => line.split(' ')[1] === String(id)).join('\n')
      for (const text of [own[0]!, formatClusterId(other), 'run zabra recover adopt', 'the lines server.N'])
        expect(lines).toContain(text)
    }
    await ensemble.create(await ensemble.client(ensemble.leader!), '/goes-on')
  })
})

describe('a standalone server', () => {
  it('gets an id at its first start and shows it', async () => {
    const server = await TestServer.start()
    const shown = async (): Promise<unknown> =>
      (JSON.parse((await server.http.request('/api/v1/cluster')).text) as { clusterId: string }).clusterId
    const id = formatClusterId(await readClusterId(server.disk, FOLDER))
    expect(id).toMatch(/^0-[\da-f]{32}$/)
    expect(await shown()).toBe(id)
    await server.restart()
    expect(await shown()).toBe(id)
    await server.stop()
  })
})
