import { connect, type Socket } from 'node:net'
import { expect, it } from 'vitest'
import { Ensemble, until } from './ensemble/ensemble.ts'
import { writeThroughAll } from './ensemble/same-trees.ts'
import { describeWith } from './harness/requirements.ts'
import { Client } from './harness/client.ts'

describeWith(['kazoo'], 'an ensemble of three Zabra servers', () => {
  it('accepts writes through each member, and serves when its leader is killed and restarts', async () => {
    // The session below never pings, and a busy machine may be slow.
    const config = { maxSessionTimeout: 60_000 }
    const ensemble = await Ensemble.plan({ kinds: ['zabra', 'zabra', 'zabra'], config })
    // Two members are a quorum, and the one with the larger id leads.
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

    // The session is closed at another member, which deletes its ephemeral node on all members.
    await resumed.close()
    await until(
      'the deletion of the node',
      async () => !(await ensemble.withClient(3, (client) => client.exists('/kept'))),
    )
  })

  it('elects a new leader when its leader is stopped by SIGTERM, and does not wait for the limit of its silence', async () => {
    // The silence of a leader is noticed after a minute.
    const config = { tickTime: 6000, syncLimit: 10 }
    const ensemble = await Ensemble.start({ kinds: ['zabra', 'zabra', 'zabra'], config })
    await writeThroughAll(ensemble, 'before')
    const leader = await ensemble.leader()
    await ensemble.stop(leader)
    // Also a session may have to wait.
    const write = (): Promise<boolean> =>
      ensemble
        .withClient(1, (client) => client.set('/before', 'after'))
        .then(
          () => true,
          () => false,
        )
    await until('a write', write, 50_000)
    await ensemble.start(leader)
    const dumps = await ensemble.dumps()
    expect(dumps.get(leader)).toEqual(dumps.get(1))
  })

  it('serves and admits members while other programs send garbage to its quorum ports', async () => {
    const ensemble = await Ensemble.start({ kinds: ['zabra', 'zabra', 'zabra'] })
    const leader = await ensemble.leader()
    const client = await ensemble.connect(1)
    const sockets: Socket[] = []
    const garbage = [
      Buffer.from('GET / HTTP/1.1\r\nHost: x\r\n\r\n'),
      Buffer.alloc(4096, 0xff),
      // FOLLOWERINFO with a length of 2 GiB.
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
    // A member that restarts meanwhile is admitted.
    const other = ensemble.ids.find((id) => id !== leader && id !== 1)!
    await ensemble.kill(other)
    await ensemble.start(other)
    await client.create('/last')
    expect(written).toBe(15)
    const lines = ensemble.member(leader).output.split('\n')
    const warnings = lines.filter((line) => line.includes('quorum port was closed'))
    expect(warnings.length).toBeLessThan(5)
    for (const socket of sockets) socket.destroy()
    await client.close()
  })
})
