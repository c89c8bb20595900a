import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Ensemble, type EnsembleOptions } from './ensemble/ensemble.ts'
import { describeWith } from './harness/requirements.ts'
import { bytes } from './harness/bytes.ts'
import { Client, createBody, fourLetterWord } from './harness/client.ts'
import { op } from './harness/opcodes.ts'
import { reference, type Kind } from './harness/servers.ts'

let ensemble: Ensemble

const ensembles: readonly (readonly Kind[])[] = [
  ['zabra', 'zabra', 'zabra'],
  [reference, 'zabra', 'zabra'],
  [reference, 'zabra', reference],
]

/** Starts an ensemble that member 3 leads: it starts with member 2, no member has data, and it has the larger id. */
async function startLedByThird(
  options: EnsembleOptions,
  dispose?: (remove: () => Promise<void>) => void,
): Promise<void> {
  ensemble = await Ensemble.plan(options, dispose)
  await ensemble.start(2, 3)
  await ensemble.start(...ensemble.ids.filter((id) => id !== 2 && id !== 3))
  expect(await ensemble.leader()).toBe(3)
}

const setBody = (path: string, data: string): Buffer => bytes().str(path).buffer(data).int(-1).done()
const getBody = (path: string): Buffer => bytes().str(path).bool(false).done()

describeWith(['apache'], 'sessions of an ensemble', () => {
  describe.each(ensembles)('of %s, %s and %s', (...kinds) => {
    let remove = async (): Promise<void> => {}
    beforeAll(() => startLedByThird({ kinds }, (action) => (remove = action)), 120_000)
    afterAll(() => remove())

    it('get their replies in order through each member', async () => {
      const clients = await Promise.all(ensemble.ids.map((id) => ensemble.connect(id)))
      await clients[0]!.create('/busy', 'x')
      await Promise.all(
        clients.map(async (client, at) => {
          const path = `/own-${at}`
          const answers: Promise<unknown>[] = [client.request(op.create, createBody(path, '0'))]
          const got: number[] = []
          for (let round = 1; round <= 120; round++) {
            answers.push(
              client.request(op.sync, bytes().str('/').done()).then(() => got.push(round)),
              client.request(op.setData, setBody(path, String(round))).then(({ err }) => expect(err).toBe(0)),
              client.request(op.setData, setBody('/busy', `${at}-${round}`)),
              client.request(op.getData, getBody(path)).then(({ body }) => {
                expect(body.buffer()?.toString(), `a read behind write ${round} through ${at + 1}`).toBe(
                  String(round),
                )
              }),
            )
          }
          await Promise.all(answers)
          expect(got).toEqual(Array.from({ length: 120 }, (_, index) => index + 1))
        }),
      )
      for (const client of clients) await client.close()
    })

    it('move between members and lose their old connection', async () => {
      for (const [from, to] of [
        [1, 2],
        [2, 3],
        [3, 1],
      ] as const) {
        const old = await ensemble.connect(from)
        const path = `/moved-${from}`
        await old.create(path, 'old', 1)
        const moved = await Client.connect(ensemble.member(to).port, { resume: old.session })
        expect(moved.session.id).toBe(old.session.id)
        // A write over the old connection closes it and has no effect.
        await expect(old.set(path, 'late')).rejects.toThrow()
        await moved.set(path, 'moved')
        expect((await moved.get(path)).data?.toString()).toBe('moved')
        await moved.close()
        await ensemble.withClient(from, async (client) => {
          await client.request(op.sync, bytes().str('/').done())
          expect(await client.exists(path)).toBeUndefined()
        })
      }
    })

    it('that send malformed requests do not block others', async () => {
      const zabraIds = ensemble.ids.filter((id) => kinds[id - 1] === 'zabra')
      for (const id of zabraIds) {
        const client = await ensemble.connect(id)
        const malformed = await client.request(op.create, Buffer.from([0, 0, 0, 99]))
        expect(malformed.err).toBe(-5)
        await client.create(`/after-${id}`, '')
        await client.close()
      }
      // The same through an Apache learner of a Zabra leader.
      if (kinds[0] === 'zabra' || kinds[2] !== 'zabra') return
      const client = await ensemble.connect(1)
      const malformed = await client.request(op.create, Buffer.from([0, 0, 0, 99])).catch(() => undefined)
      if (malformed !== undefined) expect(malformed.err).toBe(-5)
      await ensemble.withClient(1, async (other) => void (await other.create('/after-apache', '')))
      client.drop()
    })
  })

  it('mntr has the plain keys of Apache ZooKeeper in the same role', async () => {
    await startLedByThird({
      kinds: ['zabra', reference, 'zabra', reference, 'zabra'],
      observers: [4, 5],
      config: { '4lw.commands.whitelist': '*' },
    })
    const keys = async (id: number): Promise<string[]> =>
      (await fourLetterWord(ensemble.member(id).port, 'mntr')).match(/^zk_\w+/gm) ?? []
    const plain = [
      'peer_state',
      'observer_master_id',
      'quorum_size',
      'learners',
      'synced_followers',
      'synced_non_voting_followers',
      'synced_observers',
      'pending_syncs',
      'leader_uptime',
      'last_proposal_size',
      'min_proposal_size',
      'max_proposal_size',
    ].map((key) => `zk_${key}`)
    const of = async (id: number): Promise<string[]> => {
      const all = await keys(id)
      return plain.filter((key) => all.includes(key))
    }
    expect(await of(1)).toEqual(await of(2))
    expect(await of(5)).toEqual(await of(4))
    expect(await of(3)).toEqual(plain.filter((key) => key !== 'zk_observer_master_id'))
    expect((await keys(1)).slice(0, 3)).toEqual((await keys(2)).slice(0, 3))
    expect((await keys(5)).slice(0, 4)).toEqual((await keys(4)).slice(0, 4))
    const lines = async (id: number, name: string): Promise<string[]> =>
      (await fourLetterWord(ensemble.member(id).port, name)).split('\n').map((line) => line.split(/[=:]/)[0]!)
    expect(await lines(1, 'srvr')).toEqual(await lines(2, 'srvr'))
    expect((await lines(3, 'srvr')).slice(-2)).toEqual(['Proposal sizes last/min/max', ''])
    expect(await lines(1, 'conf')).toEqual(await lines(2, 'conf'))
  })
})
