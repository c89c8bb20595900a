import { ServerFaultError } from '@zabra/client'
import { expect, it } from 'vitest'
import { SoakDisks } from './soak-disks.ts'

it('a write may be refused from the moment a disk is full until writes are acknowledged again', () => {
  const disks = new SoakDisks()
  const refusal = new ServerFaultError('', 'SYSTEM_ERROR')
  disks.environmentOf(1)
  expect(disks.mayRefuse(refusal)).toBe(false)
  disks.set(1, 'slow', true)
  expect(disks.mayRefuse(refusal)).toBe(false)
  disks.set(1, 'full', true)
  expect(disks.mayRefuse(refusal)).toBe(true)
  expect(disks.mayRefuse(new Error('SYSTEM_ERROR'))).toBe(false)
  disks.set(1, 'full', false)
  expect(disks.mayRefuse(refusal)).toBe(true)
  disks.recovered()
  expect(disks.mayRefuse(refusal)).toBe(false)
})
