import { afterAll } from 'vitest'
import { cleanUp } from './servers.ts'

// A worker of the test runner may be ended by a signal, so cleaning up cannot wait for its exit.
afterAll(cleanUp)
