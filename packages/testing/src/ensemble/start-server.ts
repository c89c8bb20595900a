import { ChildServer, type ChildServerOptions } from './child-server.ts'
import type { TestMember } from './test-member.ts'
import { TestServer, type TestServerOptions } from './test-server.ts'

/**
 * Starts a server on a free loopback port, with an in-memory disk by default. Close it, or use `await using`. With
 * `process: 'child'` the server runs in a process of its own and stores its data in files.
 */
export function startServer(options: ChildServerOptions): Promise<ChildServer>
export function startServer(options?: TestServerOptions): Promise<TestServer>
export async function startServer(options: TestServerOptions | ChildServerOptions = {}): Promise<TestMember> {
  const server = options.process === 'child' ? new ChildServer(options) : new TestServer(options)
  try {
    return await server.start()
  } catch (error) {
    await server.close()
    throw error
  }
}
