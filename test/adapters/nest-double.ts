// What docs/library.md uses of NestJS, for the compiler: test/long/frameworks.long.ts runs the real one.
import type { RequestHandler } from 'express'

export declare function Controller(): ClassDecorator
export declare function Module(metadata: { readonly controllers: readonly unknown[] }): ClassDecorator
export declare function Get(path?: string): MethodDecorator
export declare function Req(): ParameterDecorator

interface Application {
  use(handler: RequestHandler): this
  use(path: string, handler: RequestHandler): this
  listen(port: number): Promise<unknown>
}
export declare const NestFactory: { create(module: unknown): Promise<Application> }
