import { getEventListeners } from 'node:events'
import { expect, it } from 'vitest'
import { onAbort } from './on-abort.ts'

it('functions of one signal share one listener, which goes with the last of them', () => {
  const { signal } = new AbortController()
  const stops = Array.from({ length: 20 }, () => onAbort(signal, () => expect.unreachable()))
  expect(getEventListeners(signal, 'abort').length).toBe(1)
  for (const stop of stops) stop()
  for (const stop of stops) stop()
  expect(getEventListeners(signal, 'abort').length).toBe(0)
})

it('functions are called once in the order of their addition, except those that were taken back', () => {
  const controller = new AbortController()
  const calls: string[] = []
  onAbort(controller.signal, () => calls.push('first'))
  const stop = onAbort(controller.signal, () => calls.push('taken back'))
  onAbort(controller.signal, () => {
    calls.push('second')
    stopLast()
  })
  const stopLast = onAbort(controller.signal, () => calls.push('taken back by the second'))
  stop()
  controller.abort()
  expect(calls).toEqual(['first', 'second'])
  onAbort(controller.signal, () => calls.push('at once'))
  expect(calls).toEqual(['first', 'second', 'at once'])
})

it('a signal that had no functions left takes others', () => {
  const controller = new AbortController()
  let called = 0
  const stop = onAbort(controller.signal, () => expect.unreachable())
  stop()
  onAbort(controller.signal, () => called++)
  stop()
  controller.abort()
  expect(called).toBe(1)
})

it('without a signal nothing is called', () => {
  expect(onAbort(undefined, () => expect.unreachable())()).toBeUndefined()
})
