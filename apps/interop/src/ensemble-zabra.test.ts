import { connect, type Socket } from 'node:net'
import { afterEach, expect, it } from 'vitest'
import { Ensemble, until } from './ensemble/ensemble.ts'
import { writeThroughAll } from './ensemble/same-trees.ts'
import { describeWith } from './harness/requirements.ts'
import { Client } from './harness/client.ts'

let ensemble: Ensemble | undefined
afterEach(async () => {
  await ensemble?.[Symbol.asyncDispose]()
  ensemble = undefined
})

describeWith(['kazoo'], 'three servers of ours', () => {
  it('take writes through each member, and go on when their leader is killed and comes back', async () => {
    // Nobody pings for the session below, and a busy machine may take its time.
    const config = { maxSessionTimeout: 60_000 }
    ensemble = await Ensemble.plan({ kinds: ['zabra', 'zabra', 'zabra'], config })
    // Two of them are a quorum, and of two it is the larger one that leads.
    await ensemble.start(2, 3)
    await ensemble.start(1)
    await writeThroughAll(ensemble, 'first')
    const leader = await ensemble.leader()
    expect(leader).toBe(3)
    const session = await ensemble.connect(1)
    await session.create('/kept', 'by its session', 1)

    await ensemble.kill(leader)
    expect(await ensemble.leader()).not.toBe(leader)
    await writeThroughAll(ensemble, 'second')
    const resumed = await Client.connect(ensemble.member(2).port, { resume: session.session })
    expect((await resumed.get('/kept')).data?.toString()).toBe('by its session')

    await ensemble.start(leader)
    await writeThroughAll(ensemble, 'third')
    const dumps = await ensemble.dumps()
    expect(dumps.get(1)).toEqual(dumps.get(2))
    expect(dumps.get(3)).toEqual(dumps.get(2))
    expect(Object.keys(dumps.get(3)!)).toContain('/kept')

    // The session ends at another member than it began at, and its node with it everywhere.
    await resumed.close()
    await until(
      'the end of the node',
      async () => !(await ensemble!.withClient(3, (client) => client.exists('/kept'))),
    )
  })

  it('hand leadership over when their leader is asked to stop', async () => {
    ensemble = await Ensemble.start({ kinds: ['zabra', 'zabra', 'zabra'] })
    await writeThroughAll(ensemble, 'before')
    const leader = await ensemble.leader()
    const begun = Date.now()
    await ensemble.stop(leader)
    await until('a write', () =>
      ensemble!.withClient(1, (client) =>
        client.set('/before', 'after').then(
          () => true,
          () => false,
        ),
      ),
    )
    expect(Date.now() - begun).toBeLessThan(4000)
    await ensemble.start(leader)
    const dumps = await ensemble.dumps()
    expect(dumps.get(leader)).toEqual(dumps.get(1))
  })

  it('are not disturbed by strangers on their ports', async () => {
    ensemble = await Ensemble.start({ kinds: ['zabra', 'zabra', 'zabra'] })
    const leader = await ensemble.leader()
    const client = await ensemble.connect(1)
    const sockets: Socket[] = []
    const garbage = [
      Buffer.from('GET / HTTP/1.1\r\nHost: x\r\n\r\n'),
      Buffer.alloc(4096, 0xff),
      // FOLLOWERINFO with a length that nobody has memory for, and one of a server that is a member already.
      Buffer.concat([Buffer.from([0, 0, 0, 11]), Buffer.alloc(8), Buffer.from([0x7f, 0xff, 0xff, 0xff])]),
      Buffer.alloc(0),
    ]
    let written = 0
    for (let round = 0; round < 15; round++) {
      for (const port of ensemble.portsOf(leader))
        for (const bytes of garbage.flatMap((one) => [one, one, one])) {
          const socket = connect({ host: '127.0.0.1', port })
          socket.on('error', () => {})
          socket.write(bytes)
          sockets.push(socket)
        }
      await client.create(`/n${round}`)
      written++
    }
    expect(sockets.length).toBe(15 * 2 * 12)
    expect(await ensemble.leader()).toBe(leader)
    // A member that comes meanwhile is let in.
    const other = ensemble.ids.find((id) => id !== leader && id !== 1)!
    await ensemble.kill(other)
    await ensemble.start(other)
    await client.create('/last')
    expect(written).toBe(15)
    const lines = ensemble.member(leader).output.split('\n')
    const complaints = lines.filter((line) => line.includes('quorum port was closed'))
    expect(complaints.length).toBeLessThan(5)
    for (const socket of sockets) socket.destroy()
    await client.close()
  })
})
