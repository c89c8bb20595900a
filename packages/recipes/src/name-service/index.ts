export { NameService } from './name-service.ts'
export type { RegisterOptions, Registration, ResolveOptions } from './name-service.ts'
