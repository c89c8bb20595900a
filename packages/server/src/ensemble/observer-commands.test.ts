import { expect, it } from 'vitest'
import { Ensemble } from './testing/ensemble.ts'

const command = async (ensemble: Ensemble, id: number, name: string): Promise<Record<string, unknown>> =>
  JSON.parse((await ensemble.member(id).http.request(`/commands/${name}`)).text) as Record<string, unknown>

/** Starts three voters and the observer 4. */
const start = (): Promise<Ensemble> =>
  Ensemble.start(4, { observers: [4], adminRoleOperate: ['ip:127.0.0.1'] })

it('a leader describes the connections of its observers, and resets their counts', async () => {
  const ensemble = await start()
  const leader = ensemble.leader!
  const client = await ensemble.client(4)
  expect(await ensemble.create(client, '/a')).toBe('1:0')
  const { synced_observers: count, observers } = await command(ensemble, leader, 'observers')
  expect(count).toBe(1)
  expect(observers).toEqual([
    {
      remote_socket_address: expect.stringMatching(/^\/.+:\d+$/) as string,
      sid: 4,
      established: expect.any(Number) as number,
      queued_packets: 0,
      queued_packets_size: 0,
      packets_received: expect.any(Number) as number,
      packets_sent: expect.any(Number) as number,
      // The own sync of the observer, the session and the node.
      requests: 3,
      last_zxid: ensemble.server(leader).stats().lastZxid,
    },
  ])
  const [before] = observers as readonly Record<string, number>[]
  expect(before!['packets_received']).toBeGreaterThan(2)
  expect(before!['packets_sent']).toBeGreaterThan(2)
  expect(ensemble.clock.wall() - before!['established']!).toBeLessThan(60_000)
  await command(ensemble, leader, 'observer_connection_stat_reset')
  const after = (await command(ensemble, leader, 'obsr'))['observers']
  expect(after).toMatchObject([{ sid: 4, packets_received: 0, packets_sent: 0, requests: 0, last_zxid: -1 }])
})

it('followers and observers name no observers', async () => {
  const ensemble = await start()
  for (const id of [4, ensemble.leader === 1 ? 2 : 1])
    expect(await command(ensemble, id, 'observers')).toMatchObject({ synced_observers: 0, observers: [] })
})

it('every member lists the voters with their addresses, its own client address among them, and no observer', async () => {
  const ensemble = await start()
  const voter = (id: number, asked: number) => ({
    server_addresses: [`127.0.0.1:${2000 + id}`],
    election_addresses: [`127.0.0.1:${3000 + id}`],
    client_address: id === asked ? `0.0.0.0:${4000 + id}` : '',
    learner_type: 'participant',
  })
  for (const id of ensemble.members.keys())
    expect(await command(ensemble, id, 'voting_view')).toMatchObject({
      current_config: { 1: voter(1, id), 2: voter(2, id), 3: voter(3, id) },
    })
})
