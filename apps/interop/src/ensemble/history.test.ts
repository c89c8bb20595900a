import { expect, it } from 'vitest'
import { History } from './history.ts'

const write = { by: 'w0', began: 0, ended: 1, zxid: 1n }

it('waits for writes that are acknowledged from then on', async () => {
  const history = new History()
  history.addWrite(write)
  const waiting = history.waitForWrites(2)
  history.addWrite(write)
  history.addWrite(write)
  await waiting
  expect(history.acknowledged).toBe(3)
})

it('says which violations there are when no writes are acknowledged', async () => {
  const history = new History()
  history.addViolation('w1: write 4 failed')
  await expect(history.waitForWrites(1, 1)).rejects.toThrow(
    'Waited 1 ms for 1 acknowledged writes; there is w1: write 4 failed',
  )
})
