import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Ensemble, until } from './ensemble/ensemble.ts'
import { describeWith, isLong } from './harness/requirements.ts'
import { ConnectionLost, ErrorReply } from './harness/client.ts'
import { reference, type Kind } from './harness/servers.ts'

let ensemble: Ensemble

/** More transactions than a leader keeps in memory. */
const MANY = 700

/** Creates nodes through a member, and retries over an election. */
async function writeMany(id: number, label: string, count: number): Promise<void> {
  const paths = [`/${label}`, ...Array.from({ length: count }, (_, n) => `/${label}/${n}`)]
  await until(`nodes below /${label}`, async () => {
    const client = await ensemble.connect(id)
    const made = await Promise.allSettled(paths.map((path) => client.create(path, `value of ${path}`)))
    await client.close().catch(ignoreConnectionLoss)
    return made.every((one) => one.status === 'fulfilled' || isNodeExists(one.reason))
  })
}

const isNodeExists = (reason: unknown): boolean => reason instanceof ErrorReply && reason.code === -110

/** Ignores a lost connection: on a busy machine a leader may lose its quorum for a moment. */
function ignoreConnectionLoss(error: unknown): void {
  if (!(error instanceof ConnectionLost)) throw error
}

async function expectOneTree(): Promise<void> {
  let dumps: Awaited<ReturnType<Ensemble['dumps']>> | undefined
  await until('the trees', async () => {
    dumps = (await ensemble.dumps().catch(ignoreConnectionLoss)) ?? undefined
    return dumps !== undefined
  })
  expectSame(dumps!)
}

function expectSame(dumps: Awaited<ReturnType<Ensemble['dumps']>>): void {
  for (const [id, dump] of dumps) expect(dump, `the tree of ${id}`).toEqual(dumps.get(1))
}

/** Returns how server 3 was synchronized each time, from the log of a Zabra member: its own or the leader's. */
async function syncModesOf3(kinds: readonly Kind[]): Promise<string[]> {
  const teller = kinds[2] === 'zabra' ? 3 : await ensemble.leader()
  const { output } = ensemble.member(teller)
  const line = /up to date/
  return output
    .split('\n')
    .filter((text) => line.test(text) && (teller === 3 || /"?peer"?[:=] ?3/.test(text)))
    .map((text) => /"?how"?[:=] ?"?(\w+)/.exec(text)?.[1] ?? text)
}

/** Returns the transaction logs of server 3, with uncommitted transactions. */
function logOf3(): Buffer {
  const folder = join(ensemble.folder(3), 'version-2')
  const logs = readdirSync(folder).filter((name) => name.startsWith('log.'))
  return Buffer.concat(logs.map((name) => readFileSync(join(folder, name))))
}

const sides: readonly (readonly Kind[])[] = [
  [reference, reference, 'zabra'],
  ['zabra', 'zabra', reference],
]

describeWith(['apache'], 'the third member of an ensemble, when it rejoins,', () => {
  describe.each(sides)('of %s, %s and %s', (...kinds) => {
    let remove = async (): Promise<void> => {}
    beforeAll(async () => {
      const options = { kinds, javaFlags: ['-Dzookeeper.snapshotSizeFactor=-1'] }
      ensemble = await Ensemble.start(options, (action) => (remove = action))
    }, 120_000)
    afterAll(() => remove())

    it('synchronizes by DIFF after few writes and by SNAP after many', async () => {
      await writeMany(1, 'first', 10)
      await ensemble.kill(3)
      await ensemble.leader()
      await ensemble.start(3)
      await expectOneTree()
      const ways = [(await syncModesOf3(kinds)).at(-1)]

      await ensemble.kill(3)
      await writeMany(1, 'little', 20)
      await ensemble.start(3)
      await expectOneTree()
      ways.push((await syncModesOf3(kinds)).at(-1))

      await ensemble.kill(3)
      await writeMany(1, 'much', MANY)
      await ensemble.start(3)
      await expectOneTree()
      ways.push((await syncModesOf3(kinds)).at(-1))

      await ensemble.kill(3)
      rmSync(join(ensemble.folder(3), 'version-2'), { recursive: true })
      await ensemble.start(3)
      await expectOneTree()
      ways.push((await syncModesOf3(kinds)).at(-1))
      expect(ways).toEqual(['diff', 'diff', 'snap', 'snap'])

      // The member is durable: it can lead after a restart of all.
      await ensemble.waitUntilSynced()
      await ensemble.kill(...ensemble.ids)
      await ensemble.start(1, 3)
      expect(await ensemble.leader()).toBe(3)
      await ensemble.start(2)
      await writeMany(3, 'last', 5)
      await expectOneTree()
    })

    it('synchronizes by SNAP under writes', async () => {
      await ensemble.kill(3)
      await writeMany(1, 'load', MANY)
      // Clients create, change and delete nodes while the snapshot is streamed.
      const leader = await ensemble.leader()
      let isWriting = true
      const load = async (lane: number): Promise<void> => {
        let writer = await ensemble.connect(leader)
        for (let n = 0; isWriting; n++) {
          try {
            await writer.create(`/load/lane-${lane}-${n}`, `${n}`)
            await writer.set(`/load/${(n * 7 + lane) % MANY}`, `changed ${n}`)
            if (n > 3) await writer.delete(`/load/lane-${lane}-${n - 3}`)
          } catch (error) {
            // On a busy machine a leader may lose its quorum for a moment; the write in flight may be applied or not.
            if (!(error instanceof ConnectionLost) && !(error instanceof ErrorReply)) throw error
            if (error instanceof ConnectionLost) writer = await ensemble.connect(await ensemble.leader())
          }
        }
        await writer.close().catch(ignoreConnectionLoss)
      }
      const lanes = Promise.all([0, 1, 2, 3, 4, 5, 6, 7].map(load))
      lanes.catch(() => {})
      for (let round = 0; round < (isLong ? 3 : 2); round++) {
        await ensemble.start(3)
        await until('the member', async () => (await ensemble.modeOf(3)) === 'follower')
        const ways = await syncModesOf3(kinds)
        expect(ways.at(-1), `${ways.join()}\n${ensemble.member(leader).output}`).toBe('snap')
        await ensemble.kill(3)
        await new Promise((done) => setTimeout(done, 300))
        rmSync(join(ensemble.folder(3), 'version-2'), { recursive: true })
      }
      await ensemble.start(3)
      isWriting = false
      await lanes
      await expectOneTree()
    })
  })

  it.each(sides)('of %s, %s and %s synchronizes by DIFF from the log on disk', async (...kinds) => {
    ensemble = await Ensemble.start({ kinds, javaFlags: ['-Dzookeeper.snapshotSizeFactor=0'] })
    await writeMany(1, 'first', 10)
    await ensemble.kill(3)
    await writeMany(1, 'much', MANY)
    await ensemble.start(3)
    await expectOneTree()
    expect((await syncModesOf3(kinds)).at(-1)).toBe('diff')
  })

  it.each(sides)('of %s, %s and %s truncates transactions that were never committed', async (...kinds) => {
    ensemble = await Ensemble.plan({
      kinds,
      // Long enough that the leader does not step down before its writes are logged, even on a busy machine.
      config: { syncLimit: 50 },
      configOf: (_, kind) => (kind === 'zabra' ? { 'leader.truncateFromBytes': 0 } : {}),
    })
    // Of two members the one with the higher id leads.
    await ensemble.start(1, 3)
    await ensemble.start(2)
    expect(await ensemble.leader()).toBe(3)
    const client = await ensemble.connect(3)
    await client.create('/kept')
    // The connections of the stopped followers stay open, so the leader logs these writes and never commits them.
    await ensemble.freeze(1, 2)
    const lost = [1, 2, 3].map((n) => client.create(`/lost-${n}`).catch(() => 'lost'))
    await until('a log with all of them', () => Promise.resolve(logOf3().includes('/lost-3')))
    await ensemble.kill(1, 2, 3)
    expect(await Promise.all(lost)).toEqual(['lost', 'lost', 'lost'])
    await ensemble.start(1, 2)
    await ensemble.leader()
    await ensemble.start(3)
    await until('member 3', async () => (await ensemble.modeOf(3)) === 'follower')
    expect((await syncModesOf3(kinds)).at(-1)).toBe('trunc')
    await expectOneTree()
    const names = await ensemble.withClient(3, (reader) => reader.children('/'))
    expect(names).toContain('kept')
    expect(names.join()).not.toContain('lost')

    // The truncated transactions do not reappear after a restart.
    await ensemble.kill(3)
    await ensemble.withClient(2, (writer) => writer.create('/later'))
    await ensemble.start(3)
    await expectOneTree()
  })
})
