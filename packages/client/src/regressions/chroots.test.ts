import { expect, it } from 'vitest'
import { client, setupEachTest, world } from '../testing/setup.ts'

setupEachTest({ sessionTimeoutMs: 3000 })

it('a recursive delete of / of a chroot also deletes a znode named zookeeper', async () => {
  await world.outcome(client.createMissing(['/app/zookeeper/x']))
  const chrootClient = client.chroot('/app')
  await world.outcome(chrootClient.delete('/', { recursive: true }))
  expect((await world.outcome(client.getChildren('/app'))).children).toEqual([])
})

it('a read of a missing chroot names the chroot in the error', async () => {
  const chrootClient = await world.client({ servers: 'a:2181/none' })
  await expect(world.outcome(chrootClient.getChildren('/'))).rejects.toMatchObject({ code: 'NO_CHROOT' })
})

it('a transaction and a multiRead below a chroot that does not exist say so, as other calls do', async () => {
  const client = await world.client({ chroot: '/none' })
  const created = world.outcome(client.multi([{ op: 'create', path: '/a' }]))
  await expect(created).rejects.toMatchObject({ code: 'MULTI_FAILED', causeCode: 'NO_CHROOT' })
  const below = world.outcome(client.multi([{ op: 'create', path: '/a/b' }]))
  await expect(below).rejects.toMatchObject({ causeCode: 'NO_NODE' })
  const read = await world.outcome(
    client.multiRead([
      { op: 'getChildren', path: '/' },
      { op: 'getData', path: '/a' },
    ]),
  )
  expect(read).toMatchObject([{ code: 'NO_CHROOT' }, { code: 'NO_NODE' }])
})
