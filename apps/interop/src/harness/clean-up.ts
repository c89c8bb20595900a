import { afterAll } from 'vitest'
import { cleanUp } from './servers.ts'

// The test runner may kill a worker with a signal, so cleanup cannot wait for its exit.
afterAll(cleanUp)
