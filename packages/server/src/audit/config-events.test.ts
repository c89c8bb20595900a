import { describe, expect, it } from 'vitest'
import { logEvents } from '../logging/log-events.ts'
import { configEvent, configEventIds } from './config-events.ts'

describe('changes of the server in the audit log', () => {
  it('are events that the log has', () => {
    expect(configEventIds.filter((id) => !Object.hasOwn(logEvents, id))).toEqual([])
  })

  it('say what the line of the log says', () => {
    expect(
      configEvent('admin.log-level', { of: 'zab', to: 'debug', seconds: 60 }, 'The level was changed'),
    ).toEqual({
      category: 'config',
      operation: 'logLevel',
      result: 'success',
      detail: 'The level was changed of=zab to=debug seconds=60',
    })
    expect(configEvent('session.expired', {}, '')).toBeUndefined()
  })
})
